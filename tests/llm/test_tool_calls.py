"""The assembler: fragments of calls in every form that servers send, and what may run of them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from echokit_py.llm import names, tool_calls
from echokit_py.llm.base import Refusal, RefusedCall, Tool, ToolCall
from echokit_py.llm.tool_calls import Assembler, AssemblyError, Ending

Fragment = tuple[int | None, str, str, str]  # index, id, name, arguments
TOOLS = ["open_blind", "play_song", "count_sheep", "tell_time"]


def assemble(
    fragments: Sequence[Fragment], end: Ending | Refusal = Ending.NORMAL, tools: Sequence[str | Tool] | None = TOOLS
) -> tuple[tuple[ToolCall, ...], tuple[RefusedCall, ...]]:
    assembler = Assembler(names.offer(tools))
    for fragment in fragments:
        assembler.add(*fragment)
    return assembler.finish(end)


def runs(fragments: Sequence[Fragment], tools: Sequence[str | Tool] | None = TOOLS) -> list[tuple[str, str, str]]:
    """What runs, where nothing is refused."""
    calls, refused = assemble(fragments, tools=tools)
    assert refused == ()
    assert len({call.id for call in calls}) == len(calls)
    return [(call.id, call.name, call.arguments) for call in calls]


def refusals(
    fragments: Sequence[Fragment], tools: Sequence[str | Tool] | None = TOOLS
) -> list[tuple[str, str, Refusal]]:
    """What is refused, where nothing runs."""
    calls, refused = assemble(fragments, tools=tools)
    assert calls == ()
    return [(call.name, call.raw, call.reason) for call in refused]


def test_index_id_name_and_arguments_come_in_any_order() -> None:
    whole = [("c1", "play_song", '{"title":"Gymnopédie"}')]
    parts: list[Fragment] = [(0, "c1", "", ""), (0, "", "play_song", ""), (0, "", "", '{"title":"Gymnopédie"}')]
    for first, second, third in [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]:
        assert runs([parts[first], parts[second], parts[third]]) == whole


def test_every_cut_of_the_arguments_gives_the_same_call() -> None:
    text = '{"title":"A \\"B\\" {C}","n":[1,{}]}'
    fragments: list[Fragment] = [(3, "c1", "play_song", ""), *((3, "", "", character) for character in text)]
    assert runs(fragments) == [("c1", "play_song", text)]


def test_calls_are_told_apart_by_their_index() -> None:
    fragments: list[Fragment] = [
        (2, "c2", "open_blind", '{"room":'),
        (-1, "c1", "count_sheep", '{"n":'),
        (2, "", "", '"attic"}'),
        (-1, "", "", "9}"),
    ]
    assert runs(fragments) == [("c2", "open_blind", '{"room":"attic"}'), ("c1", "count_sheep", '{"n":9}')]


def test_without_an_index_calls_are_told_apart_by_their_ids() -> None:
    fragments: list[Fragment] = [
        (None, "a", "count_sheep", '{"n":'),
        (None, "b", "play_song", '{"title":'),
        (None, "a", "", "1}"),
        (None, "b", "", '"x"}'),
    ]
    assert runs(fragments) == [("a", "count_sheep", '{"n":1}'), ("b", "play_song", '{"title":"x"}')]


def test_without_index_and_id_names_begin_calls_and_the_rest_belongs_to_the_open_one() -> None:
    fragments: list[Fragment] = [
        (None, "", "count_sheep", ""),
        (None, "", "", '{"n":'),
        (None, "", "", "1}"),
        (None, "", "play_song", '{"title":"x"}'),
        (None, "", "play_song", '{"title":"y"}'),
    ]
    found = runs(fragments)
    assert [call[1:] for call in found] == [
        ("count_sheep", '{"n":1}'),
        ("play_song", '{"title":"x"}'),
        ("play_song", '{"title":"y"}'),
    ]
    assert all(call[0] for call in found)


def test_an_index_that_comes_late_names_the_open_call() -> None:
    assert runs([(None, "a", "count_sheep", '{"n"'), (0, "", "", ":1}")]) == [("a", "count_sheep", '{"n":1}')]
    assert runs([(None, "", "count_sheep", '{"n"'), (0, "", "", ":"), (0, "z", "", "1}")]) == [
        ("z", "count_sheep", '{"n":1}')
    ]


def test_an_index_that_counts_fragments_is_no_new_call_while_the_id_stays() -> None:
    fragments: list[Fragment] = [(0, "a", "count_sheep", '{"n"'), (1, "a", "", ":1"), (2, "a", "", "}")]
    assert runs(fragments) == [("a", "count_sheep", '{"n":1}')]


def test_a_fragment_of_an_unknown_index_that_nothing_claims_voids_the_call_it_may_belong_to() -> None:
    # The arguments may be those of the first call: it must not run without them.
    assert refusals([(0, "a", "tell_time", ""), (1, "", "", '{"zone":"CET"}')]) == [
        ("tell_time", "", Refusal.BAD_JSON),
        ("", '{"zone":"CET"}', Refusal.NO_NAME),
    ]


class TestTheSameIndexAgain:
    def test_with_a_new_id_and_a_name_after_complete_arguments_is_a_new_call(self) -> None:
        fragments: list[Fragment] = [(0, "a", "count_sheep", '{"n":1}'), (0, "b", "count_sheep", '{"n":1}')]
        assert runs(fragments) == [("a", "count_sheep", '{"n":1}'), ("b", "count_sheep", '{"n":1}')]

    def test_with_a_new_id_alone_is_the_same_call(self) -> None:
        fragments: list[Fragment] = [(0, "a", "count_sheep", '{"n"'), (0, "b", "", ":1"), (0, "c", "", "}")]
        assert runs(fragments) == [("a", "count_sheep", '{"n":1}')]

    def test_with_a_new_id_and_the_name_each_time_while_arguments_are_open_is_the_same_call(self) -> None:
        fragments: list[Fragment] = [
            (0, "a", "count_sheep", '{"n"'),
            (0, "b", "count_sheep", ":1"),
            (0, "c", "count_sheep", "}"),
        ]
        assert runs(fragments) == [("a", "count_sheep", '{"n":1}')]

    def test_with_everything_repeated_is_the_same_call(self) -> None:
        fragments: list[Fragment] = [(0, "a", "count_sheep", piece) for piece in ("", '{"n"', ":1", "}", "")]
        assert runs(fragments) == [("a", "count_sheep", '{"n":1}')]

    def test_with_another_name_and_id_is_a_new_call_even_when_no_arguments_came(self) -> None:
        fragments: list[Fragment] = [(0, "a", "tell_time", ""), (0, "b", "count_sheep", '{"n":1}')]
        assert runs(fragments) == [("a", "tell_time", "{}"), ("b", "count_sheep", '{"n":1}')]

    def test_with_the_same_id_and_another_name_is_a_new_call_with_an_id_of_its_own(self) -> None:
        (first, second) = runs([(0, "a", "count_sheep", '{"n":1}'), (0, "a", "tell_time", "{}")])
        assert first == ("a", "count_sheep", '{"n":1}')
        assert second[0] != "a"
        assert second[1:] == ("tell_time", "{}")

    def test_without_ids_other_arguments_are_a_new_call_and_the_same_ones_are_said_again(self) -> None:
        again: list[Fragment] = [(0, "", "count_sheep", '{"n":1}')] * 3
        assert [call[1:] for call in runs(again)] == [("count_sheep", '{"n":1}')]
        others: list[Fragment] = [(0, "", "count_sheep", f'{{"n":{number}}}') for number in (1, 2)]
        assert [call[2] for call in runs(others)] == ['{"n":1}', '{"n":2}']

    def test_with_the_name_and_nothing_else_after_complete_arguments_is_no_second_call(self) -> None:
        assert len(runs([(0, "", "count_sheep", '{"n":1}'), (0, "", "count_sheep", "")])) == 1
        assert len(runs([(0, "a", "count_sheep", '{"n":1}'), (0, "", "count_sheep", " ")])) == 1

    def test_an_id_that_comes_with_the_second_call_only_makes_it_one(self) -> None:
        (first, second) = runs([(0, "", "count_sheep", '{"n":1}'), (0, "b", "count_sheep", '{"n":2}')])
        assert (first[2], second) == ('{"n":1}', ("b", "count_sheep", '{"n":2}'))

    def test_with_another_name_while_arguments_are_open_refuses_the_open_one(self) -> None:
        calls, refused = assemble([(0, "a", "count_sheep", '{"n"'), (0, "b", "tell_time", "{}")])
        assert [call.name for call in calls] == ["tell_time"]
        assert [(call.name, call.reason) for call in refused] == [("count_sheep", Refusal.BAD_JSON)]


class TestNames:
    @pytest.mark.parametrize("pieces", [["play_", "song"], ["play_song", "play_song"], ["play", "play_song"]])
    def test_are_settled_by_the_offer(self, pieces: list[str]) -> None:
        fragments: list[Fragment] = [(0, "a", pieces[0], ""), (0, "", pieces[1], ""), (0, "", "", "{}")]
        assert runs(fragments) == [("a", "play_song", "{}")]

    def test_split_with_the_id_on_each_piece(self) -> None:
        fragments: list[Fragment] = [(0, "a", "play_", ""), (0, "a", "song", ""), (0, "a", "", "{}")]
        assert runs(fragments) == [("a", "play_song", "{}")]

    def test_split_with_a_new_id_on_each_piece(self) -> None:
        fragments: list[Fragment] = [(0, "a", "play_", ""), (0, "b", "song", ""), (0, "c", "", "{}")]
        assert runs(fragments) == [("a", "play_song", "{}")]

    def test_a_written_null_after_the_name_changes_nothing(self) -> None:
        assert runs([(0, "a", "play_song", "{"), (0, "", "null", "}")]) == [("a", "play_song", "{}")]

    def test_that_were_not_offered_are_refused(self) -> None:
        fragments: list[Fragment] = [(0, "a", "play_songs", "{}"), (1, "b", "play_", ""), (1, "", "songs", "{}")]
        assert {reason for _, _, reason in refusals(fragments)} == {Refusal.UNKNOWN_TOOL}
        assert refusals([(0, "a", "play_song", "{}")], tools=[]) == [("play_song", "{}", Refusal.UNKNOWN_TOOL)]

    def test_that_never_came_are_refused(self) -> None:
        assert refusals([(0, "a", "", '{"n":1}')]) == [("", '{"n":1}', Refusal.NO_NAME)]
        assert refusals([(None, "a", "", "")]) == [("", "", Refusal.NO_NAME)]

    def test_are_not_checked_where_nothing_is_known_of_the_tools(self) -> None:
        assert runs([(0, "a", "any_", ""), (0, "", "thing", "{}")], tools=None) == [("a", "any_thing", "{}")]
        fragments: list[Fragment] = [(0, "a", "any", ""), (0, "b", "thing", "{}")]
        assert runs(fragments, tools=None) == [("a", "any", "{}"), ("b", "thing", "{}")]

    def test_repeated_with_every_fragment_cost_little(self) -> None:
        fragments: list[Fragment] = [(0, "", "count_sheep", piece) for piece in ['{"n":"', *"z" * 5000, '"}']]
        assert [call[2] for call in runs(fragments)] == ['{"n":"' + "z" * 5000 + '"}']


class TestIds:
    def test_missing_and_doubled_ones_are_made_up_unique(self) -> None:
        fragments: list[Fragment] = [(place, "same", "count_sheep", f'{{"n":{place}}}') for place in range(3)]
        fragments += [(3, "", "count_sheep", '{"n":3}'), (4, "half \ud800", "tell_time", "")]
        found = [call[0] for call in runs(fragments)]
        assert found[0] == "same"
        assert all(made.startswith("call_") for made in found[1:])

    def test_that_never_get_a_name_without_an_index_are_the_open_call(self) -> None:
        fragments: list[Fragment] = [
            (None, "a", "count_sheep", '{"n"'),
            (None, "b", "", ":1"),
            (None, "c", "", "}"),
            (None, "d", "", ""),
        ]
        assert runs(fragments) == [("a", "count_sheep", '{"n":1}')]

    def test_with_arguments_but_no_name_after_a_complete_call_are_refused(self) -> None:
        calls, refused = assemble([(None, "a", "count_sheep", '{"n":1}'), (None, "b", "", '{"n":2}')])
        assert [call.id for call in calls] == ["a"]
        assert [call.reason for call in refused] == [Refusal.NO_NAME]

    def test_before_the_name_without_an_index(self) -> None:
        fragments: list[Fragment] = [(None, "a", "", ""), (None, "a", "tell_time", ""), (None, "b", "", "")]
        fragments += [(None, "b", "count_sheep", '{"n":1}')]
        assert runs(fragments) == [("a", "tell_time", "{}"), ("b", "count_sheep", '{"n":1}')]


class TestTheEnd:
    FRAGMENTS: Sequence[Fragment] = [(0, "a", "count_sheep", '{"n":1}'), (1, "b", "tell_time", "{}")]

    @pytest.mark.parametrize("reason", [Refusal.TRUNCATED, Refusal.STREAM_CUT, Refusal.STREAM_ERROR])
    def test_a_bad_one_voids_every_call(self, reason: Refusal) -> None:
        assert assemble(self.FRAGMENTS, reason) == (
            (),
            (RefusedCall("count_sheep", '{"n":1}', reason), RefusedCall("tell_time", "{}", reason)),
        )

    def test_an_unproven_one_lets_complete_objects_run(self) -> None:
        calls, refused = assemble(self.FRAGMENTS[:1], Ending.UNPROVEN)
        assert [call.id for call in calls] == ["a"]
        assert refused == ()

    @pytest.mark.parametrize("other", ["{}", "", '{"n":', "[1]"])
    def test_an_unproven_one_voids_all_when_one_call_is_not_complete(self, other: str) -> None:
        calls, refused = assemble([self.FRAGMENTS[0], (1, "b", "tell_time", other)], Ending.UNPROVEN)
        assert calls == ()
        assert {call.reason for call in refused} == {Refusal.STREAM_CUT}
        assert {call.name for call in refused} == {"count_sheep", "tell_time"}

    def test_bad_arguments_of_one_call_do_not_touch_the_others(self) -> None:
        calls, refused = assemble([(0, "a", "count_sheep", "{n:1}"), *self.FRAGMENTS[1:]])
        assert [call.id for call in calls] == ["b"]
        assert refused == (RefusedCall("count_sheep", "{n:1}", Refusal.BAD_JSON),)

    def test_nothing_is_nothing(self) -> None:
        assembler = Assembler(None)
        assembler.add(0, "", "", "")
        assembler.add(None, "", "null", "")
        assert assembler.empty
        assert assembler.finish(Ending.NORMAL) == ((), ())


def test_missing_arguments_are_an_empty_object_unless_the_tool_requires_some() -> None:
    needy = Tool("count_sheep", "", {"type": "object", "required": ["n"]})
    assert runs([(0, "a", "tell_time", ""), (1, "b", "tell_time", " ")], tools=[needy, "tell_time"]) == [
        ("a", "tell_time", "{}"),
        ("b", "tell_time", "{}"),
    ]
    assert refusals([(0, "a", "count_sheep", "")], tools=[needy]) == [("count_sheep", "", Refusal.BAD_JSON)]
    assert runs([(0, "a", "count_sheep", "{}")], tools=[needy]) == [("a", "count_sheep", "{}")]


def test_halves_of_a_character_that_a_server_cut_are_joined_and_lone_ones_refused() -> None:
    assert runs([(0, "a", "play_song", '{"t":"\ud83c'), (0, "", "", '\udfb5"}')]) == [
        ("a", "play_song", '{"t":"\U0001f3b5"}')
    ]
    assert refusals([(0, "a", "play_song", '{"t":"\ud83c"}')]) == [("play_song", '{"t":"\ufffd"}', Refusal.BAD_JSON)]


class TestWholes:
    def put(self, *steps: tuple[str, str, str, str]) -> tuple[tuple[ToolCall, ...], tuple[RefusedCall, ...]]:
        """Each step: "add" or "whole", id, name, arguments; all at index 0."""
        assembler = Assembler(names.offer(TOOLS))
        for kind, call_id, name, text in steps:
            (assembler.add if kind == "add" else assembler.put_whole)(0, call_id, name, text)
        return assembler.finish(Ending.NORMAL)

    def test_count_instead_of_fragments(self) -> None:
        calls, _ = self.put(("add", "a", "count_sheep", '{"n"'), ("whole", "a", "count_sheep", '{"n":1}'))
        assert calls == (ToolCall("a", "count_sheep", '{"n":1}'),)

    def test_stand_alone(self) -> None:
        calls, _ = self.put(("whole", "a", "count_sheep", '{"n":1}'), ("whole", "b", "null", " "))
        assert calls == (ToolCall("a", "count_sheep", '{"n":1}'),)

    def test_bring_what_is_missing(self) -> None:
        calls, _ = self.put(("add", "", "", '{"n":1}'), ("whole", "a", "count_sheep", ""))
        assert calls == (ToolCall("a", "count_sheep", '{"n":1}'),)

    def test_that_are_empty_objects_do_not_wipe_out_fragments(self) -> None:
        calls, _ = self.put(("add", "a", "count_sheep", '{"n":1}'), ("whole", "a", "count_sheep", "{}"))
        assert calls == (ToolCall("a", "count_sheep", '{"n":1}'),)
        calls, _ = self.put(("add", "a", "tell_time", ""), ("whole", "a", "tell_time", "{}"))
        assert calls == (ToolCall("a", "tell_time", "{}"),)

    def test_that_are_broken_are_refused(self) -> None:
        calls, refused = self.put(("add", "a", "count_sheep", '{"n":1}'), ("whole", "a", "count_sheep", '{"n":'))
        assert calls == ()
        assert refused == (RefusedCall("count_sheep", '{"n":', Refusal.BAD_JSON),)

    def test_called_incomplete_by_the_server_are_refused(self) -> None:
        assembler = Assembler(None)
        assembler.put_whole(0, "a", "count_sheep", '{"n":1}', cut=True)
        assembler.put_whole(0, "a", "count_sheep", '{"n":1}')
        _, refused = assembler.finish(Ending.NORMAL)
        assert [call.reason for call in refused] == [Refusal.TRUNCATED]


class TestBounds:
    def test_of_the_characters(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tool_calls, "MAX_CHARACTERS", 100)
        with pytest.raises(AssemblyError, match="too long"):
            Assembler(None).add(0, "", "", "x" * 101)
        with pytest.raises(AssemblyError, match="too long"):
            Assembler(None).add(0, "", "n" * 101, "")

    def test_of_the_calls(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tool_calls, "MAX_HEADS", 3)
        assembler = Assembler(None)
        for index in range(3):
            assembler.add(index, "", "f", "")
        with pytest.raises(AssemblyError, match="too many"):
            assembler.add(3, "", "f", "")
