"""Time zones that a timestamp names in place of an offset: ``PST``, ``Europe/Paris``."""

from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

_NAMES: Final = {
    "Africa/Abidjan": "GHST", "Africa/Johannesburg": "SAST SAT", "Africa/Lagos": "WAST WAT",
    "Africa/Maputo": "CAST CAT", "Africa/Nairobi": "EAT", "America/Argentina/Buenos_Aires": "ARST ART",
    "America/Asuncion": "PYST PYT", "America/Bogota": "COST COT", "America/Caracas": "VEST VET",
    "America/Cayenne": "GFST GFT", "America/Chicago": "CDT CST CT", "America/Denver": "MDT MST",
    "America/Guayaquil": "ECST ECT", "America/Guyana": "GYST GYT", "America/Halifax": "ADT AST AT",
    "America/Juneau": "AKDT AKST AKT", "America/La_Paz": "BOST BOT", "America/Lima": "PEST PET",
    "America/Los_Angeles": "PDT PST PT", "America/Manaus": "AMST AMT", "America/Miquelon": "PMDT PMST PMT",
    "America/Montevideo": "UYST UYT", "America/New_York": "EDT EST ET", "America/Noronha": "FNST FNT",
    "America/Nuuk": "WGST WGT", "America/Paramaribo": "SRST SRT", "America/Rio_Branco": "ACT",
    "America/Sao_Paulo": "BRST BRT", "America/Scoresbysund": "EGST EGT", "America/St_Johns": "NDT NST NT",
    "Antarctica/Davis": "DAVST DAVT", "Antarctica/Mawson": "MAWST MAWT", "Antarctica/Palmer": "CLST CLT",
    "Antarctica/Rothera": "ROTST ROTT", "Antarctica/Vostok": "VOSST VOST", "Asia/Almaty": "ALMST ALMT QOSST QOST",
    "Asia/Anadyr": "ANAST ANAT", "Asia/Aqtobe": "AQTST AQTT ORAST ORAT QYZST QYZT", "Asia/Ashgabat": "TMST TMT",
    "Asia/Baku": "AZST AZT", "Asia/Bangkok": "CXST CXT ICST ICT", "Asia/Bishkek": "KGST KGT",
    "Asia/Dhaka": "BDST BDT", "Asia/Dili": "TLST TLT", "Asia/Dubai": "REST RET SCST SCT", "Asia/Dushanbe": "TJST TJT",
    "Asia/Hong_Kong": "HKST HKT", "Asia/Hovd": "HOVST HOVT", "Asia/Irkutsk": "IRKST IRKT", "Asia/Jakarta": "WIB WIST",
    "Asia/Jayapura": "EIST WIT", "Asia/Kabul": "AFST AFT", "Asia/Kamchatka": "PETST PETT", "Asia/Karachi": "PKST PKT",
    "Asia/Kathmandu": "NPST NPT", "Asia/Krasnoyarsk": "KRAST KRAT", "Asia/Kuching": "BNST BNT MYST MYT",
    "Asia/Magadan": "MAGST MAGT", "Asia/Makassar": "CIST WITA", "Asia/Novosibirsk": "NOVST NOVT",
    "Asia/Omsk": "OMSST OMST", "Asia/Riyadh": "SYOST SYOT", "Asia/Sakhalin": "SAKST SAKT", "Asia/Seoul": "KDT KST KT",
    "Asia/Singapore": "SGST SGT", "Asia/Srednekolymsk": "SREDT SRET", "Asia/Tashkent": "UZST UZT",
    "Asia/Tbilisi": "GEST GET", "Asia/Tehran": "IRDT IRST IRT", "Asia/Thimphu": "BTST BTT",
    "Asia/Tokyo": "JDT JST JT", "Asia/Ulaanbaatar": "CHOST CHOT ULAST ULAT", "Asia/Urumqi": "XJDT XJT",
    "Asia/Vladivostok": "VLAST VLAT", "Asia/Yakutsk": "YAKST YAKT", "Asia/Yangon": "CCST CCT MMST MMT",
    "Asia/Yekaterinburg": "YEKST YEKT", "Atlantic/Azores": "AZOST AZOT", "Atlantic/Canary": "WEST WET",
    "Atlantic/Cape_Verde": "CVST CVT", "Atlantic/Stanley": "FKST FKT", "Australia/Adelaide": "ACDT",
    "Australia/Eucla": "ACWDT ACWST ACWT", "Australia/Lord_Howe": "LHDT LHST LHT", "Australia/Perth": "AWDT AWST AWT",
    "Australia/Sydney": "AEDT AEST AET", "Europe/Bucharest": "EEST EET", "Europe/Istanbul": "TRST TRT",
    "Europe/Moscow": "MSD MSK", "Europe/Paris": "CEST CET MEST MET", "Europe/Samara": "SAMST SAMT",
    "Indian/Chagos": "IOST IOT", "Indian/Maldives": "MVST MVT TFST TFT", "Indian/Mauritius": "MUST MUT",
    "Pacific/Apia": "WSDT WSST WST", "Pacific/Auckland": "NZDT NZST NZT", "Pacific/Chatham": "CHADT CHAST CHAT",
    "Pacific/Easter": "EASST EAST", "Pacific/Efate": "VUST VUT", "Pacific/Fakaofo": "TKST TKT",
    "Pacific/Fiji": "FJST FJT", "Pacific/Galapagos": "GALST GALT", "Pacific/Gambier": "GAMST GAMT",
    "Pacific/Guadalcanal": "PONST PONT SBST SBT", "Pacific/Guam": "ChDT ChST",
    "Pacific/Honolulu": "HADT HAST HAT HDT HST", "Pacific/Kanton": "PHOST PHOT", "Pacific/Kiritimati": "LINST LINT",
    "Pacific/Kosrae": "KOSST KOST", "Pacific/Marquesas": "MARST MART", "Pacific/Nauru": "NRST NRT",
    "Pacific/Niue": "NUST NUT", "Pacific/Norfolk": "NFST NFT", "Pacific/Noumea": "NCST NCT",
    "Pacific/Pago_Pago": "SDT SST ST", "Pacific/Palau": "PWST PWT",
    "Pacific/Port_Moresby": "CHUST CHUT DDUST DDUT PGST PGT", "Pacific/Rarotonga": "CKHST CKT",
    "Pacific/Tahiti": "TAHST TAHT", "Pacific/Tarawa": "GILST GILT MHST MHT TVST TVT WAKST WAKT WFST WFT",
    "Pacific/Tongatapu": "TOST TOT",
}  # fmt: skip
"""By region, the abbreviations that mean it to Java's formatter of Airbyte's connector (Java 17, en-US): the region's
rules decide the offset, so that ``PST`` in July is -07:00."""
_SEVERAL: Final = ("ACST", "ATT", "BST", "BT", "CIT", "GDT", "GST", "GT", "IDT", "IST", "IT", "MT")
"""Abbreviations of several meanings, of which Java picks one that the source hardly means: BST is Bougainville, IST is
Abidjan, MT is Moscow."""

ABBREVIATIONS: Final[dict[str, str | None]] = {
    **{name: region for region, names in _NAMES.items() for name in names.split()},
    **dict.fromkeys(_SEVERAL),
}

_ZERO: Final = datetime(1970, 1, 1)
_FIRST_MICROS: Final = (datetime.min - _ZERO) // timedelta(microseconds=1)
_LAST_MICROS: Final = (datetime.max - _ZERO) // timedelta(microseconds=1)


def find_offsets(zone: ZoneInfo, local: int) -> tuple[int, int]:
    """Return a zone's microseconds east of UTC before and after a change of its clocks at a local time, given as
    microseconds since 1970; the same twice elsewhere.

    Outside the years 1 to 9999 they are those of their beginning or end.
    """
    moment = _ZERO + timedelta(microseconds=min(max(local, _FIRST_MICROS), _LAST_MICROS))
    before, after = (moment.replace(tzinfo=zone, fold=fold).utcoffset() or timedelta() for fold in (0, 1))
    return before // timedelta(microseconds=1), after // timedelta(microseconds=1)


@lru_cache(maxsize=1000)
def find_zone(name: str) -> ZoneInfo:
    """Return the zone of a name such as ``Europe/Paris``; raise ``ValueError`` for a name that does not exist."""
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError) as error:
        raise ValueError(f"there is no zone {name!r}") from error
