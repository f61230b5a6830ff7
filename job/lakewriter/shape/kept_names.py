"""Name the columns of one table: a source column keeps the name that the table gave it, whatever columns are added.

Names are decided level by level: the columns of the table, then the fields of each struct in them. In each level

1. a source column that the table has named before keeps that name, and one that lake.yaml names gets that one, also
   that of a column which the source no longer has
2. a name in the table whose source column no record has goes to the one source column that it fits;
   where it fits several, nothing is guessed: ``NAME_COLLISION``
3. a new source column gets the name that it has by itself, or the first free one with a number, in the source's order
"""

import json
from collections import defaultdict, deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count, islice
from typing import Final

import pyarrow as pa
import pyarrow.types as pt

from lakewriter.column_types import ELEMENT, KEY, VALUE, NamesByPath, is_list_like
from lakewriter.errors import LakeError, NameCollisionError, SpecInvalidError
from lakewriter.naming import NORMALISED, NameRule
from lakewriter.receipt import GivenName

Path = tuple[str, ...]
NEW_PLACE: Final = "Load it under another path; or replace it by a full refresh, whose names begin anew."


@dataclass(frozen=True)
class EarlierNames:
    """The names of a table before a load, as far as records and the catalog have them.

    given      names of earlier loads, None where no record has any
    existing   the columns of its catalog in lower case, None without one
    pinned     names that lake.yaml gives by source column; a field of a struct is named by its path, with dots
    is_loaded  whether rows of earlier loads stay beside the new ones
    pin        the line of lake.yaml that pins names, with ``#`` for them; None where no line can
    """

    table_id: str
    given: tuple[GivenName, ...] | None = None
    existing: Mapping[str, pa.DataType] | None = None
    pinned: Mapping[str, str] = field(default_factory=dict)
    is_loaded: bool = False
    pin: str | None = "names: #"

    @property
    def is_untold(self) -> bool:
        """Return whether the table has names, and neither a record nor a catalog has them."""
        return self.is_loaded and self.given is None and self.existing is None

    @property
    def columns(self) -> pa.DataType:
        """The columns of the catalog, as one struct."""
        return pa.struct(list((self.existing or {}).items()))


def add_renamed(given: tuple[GivenName, ...], before: str, now: str, name: str) -> tuple[GivenName, ...]:
    """Return names with those of a source column that was called ``before``, and of the fields in it, under what it is
    called now; its own written name is ``name``."""
    owners = {entry.source for entry in given if not entry.within}
    column = () if now in owners else (GivenName(source=now, name=name),)
    fields = (
        entry.model_copy(update={"within": (now, *entry.within[1:])})
        for entry in given
        if entry.within[:1] == (before,)
    )
    return tuple(dict.fromkeys((*given, *column, *fields)))


def _list_pairs(named: Mapping[tuple[str, ...], Sequence[str]]) -> list[tuple[str, str]]:
    return [pair for sources, names in named.items() for pair in zip(sources, names, strict=True)]


def _group_by_case(names: Collection[str]) -> dict[str, list[str]]:
    groups = defaultdict[str, list[str]](list)
    for name in names:
        groups[name.lower()].append(name)
    return groups


class ColumnNames(NamesByPath):
    """The names of a table's columns in one load, and of the fields of each struct in them.

    Called with the source names of one struct it returns the written ones, and the same ones each time; for the
    columns of the table both begin with the ``reserved`` names, which no source column may have.
    """

    def __init__(self, earlier: EarlierNames, rule: NameRule = NORMALISED, reserved: Sequence[str] = ()) -> None:
        self._earlier, self._rule, self._reserved = earlier, rule, tuple(reserved)
        self._within: Path = ()
        self._there = earlier.columns
        self._named: dict[Path, dict[tuple[str, ...], list[str]]] = {}

    def __call__(self, names: Sequence[str]) -> list[str]:
        sources = names[len(self._reserved) :]
        written = self.name_fields([(name, self._rule.make(name)) for name in sources])
        return [*self._reserved, *written]

    def inside(self, step: str) -> "ColumnNames":
        """Return what names the fields of the struct at ``step``: a source name, or ``ELEMENT``, ``KEY``, ``VALUE``."""
        inner = ColumnNames(self._earlier, self._rule)
        inner._within, inner._there = (*self._within, step), self._find_type(step)
        inner._named = self._named
        return inner

    def name_fields(self, fields: Sequence[tuple[str, str]]) -> list[str]:
        """Return the written names of columns, each given by its source name and by the name it has by itself."""
        sources = tuple(source for source, _ in fields)
        # Two columns of one name may have structs of different fields at one path.
        named = self._named.setdefault(self._within, {})
        if sources not in named:
            named[sources] = self._choose(fields)
        return list(named[sources])

    def list_given(self, discarded: Sequence[str] = ()) -> tuple[GivenName, ...]:
        """List the names that this load has given, but for columns whose written names are ``discarded``."""
        return tuple(
            GivenName(source=source, name=name, within=within)
            for within, named in self._named.items()
            for source, name in _list_pairs(named)
            if within or name not in discarded
        )

    def list_idle_pins(self) -> list[str]:
        """List what lake.yaml names and the source does not have."""
        named = [(within, source) for within, level in self._named.items() for source, _ in _list_pairs(level)]
        there = {".".join((*within, source)) for within, source in named}
        return [source for source in self._earlier.pinned if source not in there]

    def _find_type(self, step: str) -> pa.DataType:
        there = self._there
        if is_list_like(there) and step == ELEMENT:
            return there.value_type
        if pt.is_map(there):
            return {KEY: there.key_type, VALUE: there.item_type}.get(step, pa.null())
        written = dict(_list_pairs(self._named.get(self._within, {}))).get(step)
        fields = list(there) if pt.is_struct(there) and written is not None else []
        return next((entry.type for entry in fields if entry.name.lower() == str(written).lower()), pa.null())

    def _choose(self, fields: Sequence[tuple[str, str]]) -> list[str]:
        chosen: list[str | None] = [None] * len(fields)
        owned = self._take_given(fields, chosen)
        self._take_pinned(fields, chosen, owned)
        self._take_untold(fields, chosen, owned)
        # Rule names-owned
        taken = [*owned, *self._list_there(), *(name for name in chosen if name is not None)]
        rest = iter(
            self._rule.make_distinct([w for (_, w), name in zip(fields, chosen, strict=True) if not name], taken)
        )
        return [name or next(rest) for name in chosen]

    def _take_given(self, fields: Sequence[tuple[str, str]], chosen: list[str | None]) -> list[str]:
        """Give each source column the name that it has; return all names that have an owner."""
        given = [entry for entry in self._earlier.given or () if entry.within == self._within]
        self._require_apart_from_reserved(given)
        sources = dict.fromkeys(source for source, _ in fields)
        shared = self._find_shared(given, sources)
        renamed = self._find_renamed(dict.fromkeys(entry.source for entry in given), sources)
        names = defaultdict[str, deque[str]](deque)
        for entry in given:
            # A name that the rule does not take comes from an earlier file format with other rules.
            if self._rule.takes(entry.name) and self._rule.fold(entry.name) not in shared:
                names[renamed.get(entry.source, entry.source)].append(entry.name)
        for position, (source, _) in enumerate(fields):
            if names[source]:
                # Rule names-given
                chosen[position] = names[source].popleft()
        return [*self._reserved, *(entry.name for entry in given if self._rule.fold(entry.name) not in shared)]

    def _require_apart_from_reserved(self, given: Sequence[GivenName]) -> None:
        reserved = {self._rule.fold(name) for name in self._reserved}
        for entry in given:
            if self._rule.fold(entry.name) in reserved:
                raise NameCollisionError(
                    f"table {self._earlier.table_id}: {entry.name!r} is the name of a column that the load adds, and "
                    f"the table has the values of source column {entry.source!r} in it.",
                    remedy="Give the load's column another name.",
                )

    def _find_renamed(self, before: Collection[str], now: Collection[str]) -> dict[str, str]:
        """Find columns whose names have changed only in case, where engines do not distinguish case: one column had the
        name before, and one has it now."""
        if not self._rule.folds_case:
            return {}
        earlier, later = _group_by_case(before), _group_by_case(now)
        return {
            names[0]: later[name][0] for name, names in earlier.items() if len(names) == len(later.get(name, ())) == 1
        }

    def _find_left(self, sources: Collection[str]) -> set[str]:
        """Find names that only columns have had which the source no longer has."""
        given = [entry for entry in self._earlier.given or () if entry.within == self._within]
        renamed = self._find_renamed(dict.fromkeys(entry.source for entry in given), sources)
        there, left = set[str](), set[str]()
        for entry in given:
            is_there = renamed.get(entry.source, entry.source) in sources
            (there if is_there else left).add(self._rule.fold(entry.name))
        return left - there

    def _find_shared(self, given: Sequence[GivenName], sources: Collection[str]) -> set[str]:
        """Find names that several columns of the load have had, one after the other; ``NAME_COLLISION`` where
        lake.yaml does not say whose each is now."""
        owners = defaultdict[str, dict[str, None]](dict)
        for entry in given:
            if entry.source in sources:
                owners[self._rule.fold(entry.name)].setdefault(entry.source)
        shared = {name: list(owned) for name, owned in owners.items() if len(owned) > 1}
        for owned in shared.values():
            if any(self._join(source) not in self._earlier.pinned for source in owned):
                raise self._make_collision_error(owned, [self._rule.make(source) for source in owned])
        return set(shared)

    def _take_pinned(self, fields: Sequence[tuple[str, str]], chosen: list[str | None], owned: list[str]) -> None:
        """Give source columns the names that lake.yaml gives them: free ones, and those of columns that the source no
        longer has, as when it has renamed one."""
        if not self._earlier.pinned:
            return
        # Rule pins-of-gone-columns
        left = self._find_left(dict.fromkeys(source for source, _ in fields))
        for position, (source, _) in enumerate(fields):
            where = self._join(source)
            name = self._earlier.pinned.get(where)
            if name is None or source in (before for before, _ in fields[:position]):
                continue
            line = f"names of table {self._earlier.table_id} give column {where!r} the name {name!r}"
            if not self._rule.takes(name):
                raise SpecInvalidError(f"{line}, expected one that its files take, such as {self._rule.make(name)!r}.")
            if chosen[position] not in (None, name):
                raise NameCollisionError(
                    f"{line}, and its values are in the table as {chosen[position]!r}.",
                    remedy="Leave it out, or give the table another name: what is written keeps its name.",
                )
            if chosen[position] is None and self._rule.fold(name) in {*map(self._rule.fold, owned)} - left:
                raise NameCollisionError(f"{line}, which another column has.", remedy="Give it another one.")
            chosen[position] = name
            owned.append(name)

    def _take_untold(self, fields: Sequence[tuple[str, str]], chosen: list[str | None], owned: list[str]) -> None:
        """Give the names of the table that no record has to the one source column that each fits."""
        while self._earlier.is_untold or self._list_there():
            taken = {self._rule.fold(name) for name in owned}
            untold = {self._rule.fold(name) for name in self._list_there()} - taken
            wanted: dict[str, dict[str, str]] = defaultdict(dict)
            for (source, name), given in zip(fields, chosen, strict=True):
                fits = self._find_untold(name, taken, untold) if given is None else None
                if fits is not None:
                    wanted[self._rule.fold(fits)].setdefault(source, fits)
            if self._earlier.given is not None:
                # A load that failed may have left names in the catalog, none of which has values: they stay unused.
                wanted = {name: sources for name, sources in wanted.items() if len(sources) == 1}
            if not wanted:
                return
            for names in wanted.values():
                if len(names) > 1:
                    raise self._make_collision_error(list(names), [dict(fields)[source] for source in names])
                ((source, name),) = names.items()
                # If several source columns have this name, take the first that is not named yet.
                chosen[next(n for n, field in enumerate(fields) if field[0] == source and chosen[n] is None)] = name
                owned.append(name)

    def _find_untold(self, name: str, taken: Collection[str], untold: Collection[str]) -> str | None:
        """Find the name in the table for a column that wants ``name``; None if there is none."""
        numbered = (self._rule.number(name, number) for number in count(1))
        if self._earlier.is_untold:
            return next(free for free in chain([name], numbered) if self._rule.fold(free) not in taken)
        if self._rule.fold(name) not in taken:
            return name if self._rule.fold(name) in untold else None
        tried = islice(numbered, len(untold) + len(taken))
        return next((there for there in tried if self._rule.fold(there) in untold), None)

    def _join(self, source: str) -> str:
        return ".".join((*self._within, source))

    def _list_there(self) -> list[str]:
        return [entry.name for entry in self._there] if pt.is_struct(self._there) else []

    def _make_collision_error(self, sources: Sequence[str], wanted: Sequence[str]) -> LakeError:
        columns = [self._join(source) for source in sources]
        names = self._rule.make_distinct(wanted, self._reserved)
        line = json.dumps(dict(zip(columns, names, strict=True)), ensure_ascii=False)
        pin = f"Say which has which: {self._earlier.pin.replace('#', line)}" if self._earlier.pin else NEW_PLACE
        shown = " and ".join(map(repr, columns))
        return NameCollisionError(
            f"table {self._earlier.table_id}: columns {shown} would both be written as {names[0]!r}. The table was "
            "loaded before, and no record says which of them has that name in it.",
            remedy=pin,
        )
