"""The formats of sources: for each one what a load, a check and a draft need to know of it.

The options are Spark 4.1.1's: those that its classes of options register (CSVOptions, JSONOptions, XmlOptions,
ParquetOptions, OrcOptions, TextOptions, AvroOptions, JDBCOptions, FileStreamOptions), those of
https://spark.apache.org/docs/4.1.1/streaming/structured-streaming-kafka-integration.html, and those of every file
source in https://spark.apache.org/docs/4.1.1/sql-data-sources-generic-options.html. Their case does not matter.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class Format:
    """A source format. One that is not in ``FORMATS`` is read by Spark, and nothing is known of it."""

    name: str
    """Spark's name in lower case."""
    title: str = ""
    """The name in messages, of one that is no text."""
    options: frozenset[str] | None = None
    """The options that Spark's reader knows, beside those of all files; None for a format that is not Spark's own."""
    taken: frozenset[str] | None = None
    """The options that the product's reader follows, in lower case; None where it has no reader."""
    types: Literal["stored", "values", "fixed"] | None = None
    """The columns' types come from the file, from its values, or from the format; None for what is not read file by
    file."""
    magic: bytes = b""
    """The first bytes of a file."""
    endings: tuple[str, ...] = ()
    """The ends of names by which a draft recognises it."""
    is_text: bool = False
    has_lines: bool = False
    """True if rows are lines, which can be told apart however bad one of them is."""
    answers_at_once: bool = False
    """True if its first rows come at once; a broker's may be long in coming."""
    package: str = ""
    """The Maven coordinates of Spark's reader, where Spark itself lacks it."""

    @property
    def has_files(self) -> bool:
        """True if files are the source, one by one; those of a table format are not."""
        return self.types is not None

    @property
    def has_reader(self) -> bool:
        """True if the product has a reader of its own, whose tasks tell bad rows apart."""
        return self.taken is not None

    @property
    def file_title(self) -> str:
        """A file of the format, for messages: ``an ORC file``."""
        return f"{'an' if self.title[0] in 'AO' else 'a'} {self.title} file"


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


OF_EVERY_FILE: Final = _names(
    "path basePath recursiveFileLookup pathGlobFilter modifiedBefore modifiedAfter timeZone ignoreCorruptFiles "
    "ignoreMissingFiles maxFilesPerTrigger maxBytesPerTrigger maxFileAge maxCachedFiles discardCachedInputRatio "
    "latestFirst fileNameOnly cleanSource sourceArchiveDir"
)
"""All formats of files take these options of Spark."""
OF_STREAMS: Final = frozenset(
    {
        *("maxfilespertrigger", "maxbytespertrigger", "maxfileage", "maxcachedfiles", "discardcachedinputratio"),
        *("latestfirst", "filenameonly", "cleansource", "sourcearchivedir"),
        *("maxoffsetspertrigger", "minoffsetspertrigger", "maxtriggerdelay"),
    }
)
"""The options that only ``readStream`` follows, in lower case."""

_ALL: Final = (
    Format(
        "avro",
        title="Avro",
        magic=b"Obj\x01",
        types="stored",
        package="org.apache.spark:spark-avro_2.13:4.1.1",
        answers_at_once=True,
        options=_names(
            "avroSchema avroSchemaUrl compression datetimeRebaseMode enableStableIdentifiersForUnionType "
            "ignoreExtension mode positionalFieldMatching recordName recordNamespace recursiveFieldMaxDepth "
            "stableIdentifierPrefixForUnionType"
        ),
        taken=frozenset(),
    ),
    Format(
        "binaryfile",
        types="fixed",
        options=frozenset(),
    ),
    Format(
        "csv",
        types="values",
        is_text=True,
        has_lines=True,
        endings=("csv", "tsv", "tab", "psv"),
        answers_at_once=True,
        options=_names(
            "charToEscapeQuoteEscaping charset codec columnNameOfCorruptRecord columnPruning comment compression "
            "dateFormat delimiter emptyValue enableDateTimeParsingFallback encoding enforceSchema escape "
            "escapeQuotes extension header ignoreLeadingWhiteSpace ignoreTrailingWhiteSpace inferSchema "
            "inputBufferSize lineSep locale maxCharsPerColumn maxColumns mode multiLine nanValue negativeInf "
            "nullValue positiveInf preferDate quote quoteAll samplingRatio sep singleVariantColumn timeZone "
            "timestampFormat timestampNTZFormat unescapedQuoteHandling"
        ),
        taken=_names(
            "header sep delimiter quote escape comment encoding charset nullvalue emptyvalue linesep inferschema "
            "enforceschema ignoreleadingwhitespace ignoretrailingwhitespace dateformat timestampformat "
            "timestampntzformat timezone"
        ),
    ),
    Format(
        "json",
        types="values",
        is_text=True,
        has_lines=True,
        endings=("json", "jsonl", "ndjson", "geojson"),
        answers_at_once=True,
        options=_names(
            "allowBackslashEscapingAnyCharacter allowComments allowNonNumericNumbers allowNumericLeadingZeros "
            "allowSingleQuotes allowUnquotedControlChars allowUnquotedFieldNames charset "
            "columnNameOfCorruptRecord compression dateFormat dropFieldIfAllNull enableDateTimeParsingFallback "
            "encoding ignoreNullFields inferTimestamp lineSep locale mode multiLine prefersDecimal pretty "
            "primitivesAsString samplingRatio singleVariantColumn timeZone timestampFormat timestampNTZFormat "
            "useUnsafeRow writeNonAsciiCharacterAsCodePoint"
        ),
        taken=_names(
            "multiline encoding charset linesep dateformat timestampformat timestampntzformat timezone "
            "allownonnumericnumbers primitivesasstring prefersdecimal samplingratio dropfieldifallnull"
        ),
    ),
    Format(
        "orc",
        title="ORC",
        magic=b"ORC",
        types="stored",
        answers_at_once=True,
        options=_names("compression mergeSchema"),
        taken=frozenset(),
    ),
    Format(
        "parquet",
        title="Parquet",
        magic=b"PAR1",
        types="stored",
        answers_at_once=True,
        options=_names("compression datetimeRebaseMode int96RebaseMode mergeSchema"),
        taken=frozenset(),
    ),
    Format(
        "text",
        types="fixed",
        is_text=True,
        has_lines=True,
        answers_at_once=True,
        options=_names("compression encoding lineSep wholetext"),
        taken=_names("encoding charset linesep wholetext"),
    ),
    Format(
        "xml",
        types="values",
        is_text=True,
        answers_at_once=True,
        options=_names(
            "arrayElementName attributePrefix charset columnNameOfCorruptRecord compression dateFormat "
            "declaration encoding excludeAttribute ignoreNamespace ignoreSurroundingSpaces indent inferSchema "
            "locale mode multiLine nullValue preferDate prefersDecimal rootTag rowTag rowValidationXSDPath "
            "samplingRatio singleVariantColumn timeZone timestampFormat timestampNTZFormat useLegacyXMLParser "
            "validateName valueTag wildcardColName"
        ),
    ),
    Format("delta"),
    Format("iceberg"),
    Format(
        "jdbc",
        answers_at_once=True,
        options=_names(
            "batchsize cascadeTruncate connectionProvider createTableColumnTypes createTableOptions customSchema "
            "dbtable driver fetchsize hint isolationLevel keytab lowerBound numPartitions partitionColumn "
            "preferTimestampNTZ prepareQuery principal pushDownAggregate pushDownJoin pushDownLimit "
            "pushDownOffset pushDownPredicate pushDownTableSample query queryTimeout refreshKrb5Config "
            "sessionInitStatement tableComment truncate upperBound url"
        ),
    ),
    Format(
        "kafka",
        package="org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.1",
        options=_names(
            "assign endingOffsets endingOffsetsByTimestamp endingTimestamp failOnDataLoss fetchOffset.numRetries "
            "fetchOffset.retryIntervalMs groupIdPrefix includeHeaders kafkaConsumer.pollTimeoutMs "
            "maxOffsetsPerTrigger maxRecordsPerPartition maxTriggerDelay minOffsetsPerTrigger minPartitions "
            "startingOffsets startingOffsetsByTimestamp startingOffsetsByTimestampStrategy startingTimestamp "
            "subscribe subscribePattern"
        ),
    ),
    Format("kinesis"),
)
EXCEL: Final = ("xlsx", "xls", "xlsm", "ods")
"""Endings of spreadsheets, which are given as formats by mistake."""
FORMATS: Final[Mapping[str, Format]] = {entry.name: entry for entry in _ALL}
"""The formats by Spark's names in lower case."""
FILE_FORMATS: Final = frozenset(name for name, entry in FORMATS.items() if entry.has_files)


def find_format(name: str | None) -> Format:
    """Return a format by its name in any case; without a name that of an SQL read, of which nothing is known."""
    return FORMATS.get((name or "").lower()) or Format((name or "").lower())
