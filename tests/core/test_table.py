"""What holds for the table of every machine."""

from __future__ import annotations

import pytest
from tests.core.machines import TABLES, every_cue, every_state

from callwright.core.table import Table
from callwright.errors import IllegalTransition

PAIRS = [(table, state, cue) for table in TABLES for state in every_state(table) for cue in every_cue(table)]
LEGAL = [pair for pair in PAIRS if pair[1:] in pair[0].rows]
ILLEGAL = [pair for pair in PAIRS if pair[1:] not in pair[0].rows]
each_table = pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)


def name(value: object) -> str:
    return value.name


@pytest.mark.parametrize(("table", "state", "cue"), LEGAL, ids=name)
def test_a_row_is_allowed_and_followed(table: Table, state, cue):
    assert table.allows(state, cue)
    assert table.after(state, cue) is table.rows[state, cue]


@pytest.mark.parametrize(("table", "state", "cue"), ILLEGAL, ids=name)
def test_what_is_no_row_raises_and_names_machine_state_and_input(table: Table, state, cue):
    before = dict(table.rows)
    assert not table.allows(state, cue)
    with pytest.raises(IllegalTransition) as caught:
        table.after(state, cue)
    assert (caught.value.machine, caught.value.state, caught.value.event) == (table.name, state.name, cue.name)
    assert table.rows == before


@each_table
def test_every_state_can_be_reached(table: Table):
    reached, waiting = {table.start}, [table.start]
    while waiting:
        state = waiting.pop()
        new = {then for (source, _), then in table.rows.items() if source is state} - reached
        reached |= new
        waiting += new
    assert reached == set(every_state(table))


@each_table
def test_every_input_means_something_in_some_state(table: Table):
    assert {cue for _, cue in table.rows} == set(every_cue(table))


@each_table
def test_the_diagram_has_every_row_and_nothing_else(table: Table):
    head, start, *arrows = table.diagram().splitlines()
    assert (head, start.split()) == ("stateDiagram-v2", ["[*]", "-->", table.start.name])
    drawn = []
    for arrow in arrows:
        states, _, cues = arrow.strip().partition(": ")
        source, target = states.split(" --> ")
        drawn += [(source, cue.upper(), target) for cue in cues.split(", ")]
    rows = [(state.name, cue.name, then.name) for (state, cue), then in table.rows.items()]
    assert sorted(drawn) == sorted(rows)
