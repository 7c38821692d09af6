"""The feature suite's own rules: one vocabulary, registered tags, references where a tag promises them."""

import difflib
import itertools
import re
from pathlib import Path

from pytest_bdd.feature import get_feature
from pytest_bdd.parser import ScenarioTemplate, Step

from simulator.bdd.tags import problem
from simulator.bdd.vocabulary import definitions, page
from simulator.recordings.layout import unpack
from simulator.scenario import fixtures

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "features").glob("*/*.feature"))
MOST_SENTENCES = 73
ALIKE = 0.75


def _templates() -> list[ScenarioTemplate]:
    return [template for file in FILES for template in get_feature(str(file.parent), file.name).scenarios.values()]


TEMPLATES = _templates()
RECORDED = frozenset(
    case for stem in ("driver-manager", "shell-releases") for case in unpack(fixtures() / "recordings" / f"{stem}.json.xz")["cases"]
)


def _name(template: ScenarioTemplate) -> str:
    return f"{Path(template.feature.filename).relative_to(ROOT)}:{template.line_number} {template.name}"


def _steps(template: ScenarioTemplate) -> list[Step]:
    """The steps of every row."""
    if not template.templated:
        return template.render({}).steps
    rows = [row for examples in template.examples for row in examples.as_contexts()]
    assert rows, _name(template)
    return [step for row in rows for step in template.render(row).steps]


def _tags(template: ScenarioTemplate) -> set[str]:
    return template.feature.tags | template.tags | (template.rule.tags if template.rule else set())


def _row_tags(template: ScenarioTemplate) -> set[str]:
    return set().union(*(examples.tags for examples in template.examples))


def _recorded(template: ScenarioTemplate) -> list[str]:
    """The recordings that a scenario's description names: `Recorded: a, b.`"""
    named = re.search(r"Recorded: ((?:[\w.-]+,\s*)*[\w.-]+)\.(?:\s|\Z)", template.description)
    return re.split(r",\s*", named[1]) if named else []


def _said(template: ScenarioTemplate) -> str:
    """The descriptions of a scenario and of its rule."""
    return f"{template.rule.description if template.rule else ''}\n{template.description}"


def test_every_step_matches_exactly_one_sentence_and_every_sentence_is_used():
    """An unused sentence, an unknown step and an ambiguous one are named."""
    used, wrong = set(), {}
    for step in {(step.type, step.name) for template in TEMPLATES for step in _steps(template)}:
        found = [one.sentence for one in definitions() if one.keyword == step[0] and one.matches(step[1])]
        used.update((step[0], sentence) for sentence in found)
        if len(found) != 1:
            wrong[step] = found
    assert not wrong
    assert not {(one.keyword, one.sentence) for one in definitions()} - used


def test_the_vocabulary_is_small():
    """A sentence that Given and Then share counts once."""
    assert len({one.sentence for one in definitions()}) <= MOST_SENTENCES


def test_no_two_sentences_say_nearly_the_same():
    """Sentences of one keyword are compared by their words, placeholders left out."""
    alike = [
        (one.sentence, other.sentence)
        for one, other in itertools.combinations(definitions(), 2)
        if one.keyword == other.keyword
        and difflib.SequenceMatcher(a=_words(one.sentence), b=_words(other.sentence)).ratio() >= ALIKE
    ]
    assert not alike


def _words(sentence: str) -> list[str]:
    return re.findall(r"\w+", re.sub(r"\{[^}]*\}", " ", sentence).lower())


def test_every_sentence_says_what_it_means():
    """A step definition without a docstring would be a gap in docs/vocabulary.md."""
    assert [one.sentence for one in definitions() if not one.doc] == []


def test_the_page_is_up_to_date():
    """If this fails: `python -m simulator.bdd.vocabulary > docs/vocabulary.md`."""
    assert (ROOT / "docs" / "vocabulary.md").read_text(encoding="utf-8") == "\n".join(page()) + "\n"


def test_tags_are_registered():
    """Tags of Examples blocks too, which pytest-bdd turns into markers unseen."""
    wrong = [problem(tag) for template in TEMPLATES for tag in _tags(template) | _row_tags(template)]
    assert not [text for text in wrong if text]


def test_rows_are_tagged_with_releases_and_recordings_only():
    """What rows are about is a matter of their scenario; for which releases they hold, and whether recorded, is their own."""
    allowed = ("since-", "until-", "verified")
    assert not [_name(template) for template in TEMPLATES if any(not tag.startswith(allowed) for tag in _row_tags(template))]


def test_a_quirk_names_its_upstream_reference():
    """In the scenario's or the rule's description: a source file, an issue or a pull request."""
    reference = re.compile(r"Upstream: .*(\.go|\.sh|#\d+)", re.DOTALL)
    assert not [_name(template) for template in TEMPLATES if "quirk" in _tags(template) and not reference.search(_said(template))]


def test_a_verified_scenario_names_its_recordings():
    """In the scenario's description; without the tag, on the scenario or on rows, none is named."""
    verified = [template for template in TEMPLATES if "verified" in _tags(template) | _row_tags(template)]
    assert not [_name(template) for template in TEMPLATES if (template in verified) != bool(_recorded(template))]


def test_named_recordings_exist():
    """A name is a case of fixtures/recordings."""
    assert not {(_name(template), case) for template in TEMPLATES for case in _recorded(template) if case not in RECORDED}


def test_backgrounds_are_short():
    """Three steps at most, the rule's own included."""
    assert not [_name(template) for template in TEMPLATES if len(template.all_background_steps) > 3]


def test_a_scenario_stands_in_a_rule_and_has_one_act():
    """Given names a known world, When is one act, Then is observable."""
    for template in TEMPLATES:
        kinds = [step.type for step in template.steps]
        assert template.rule is not None, _name(template)
        assert kinds.count("when") == 1, _name(template)
        assert kinds == sorted(kinds, key=["given", "when", "then"].index), _name(template)
        assert kinds[-1] == "then", _name(template)


def test_a_regression_names_its_report_and_where_it_was_made():
    """Each rule of features/regressions begins with the report's id and links its thread."""
    rules = {template.rule for template in TEMPLATES if "regressions" in Path(template.feature.filename).parts}
    for rule in rules:
        assert rule is not None
        assert re.match(r"B\d+(, B\d+)*: .*\?$", rule.name), rule.name
        assert re.search(r"[\w-]+/[\w-]+#\d+|documentation", rule.description), rule.name
        for report in re.findall(r"B\d+", rule.name):
            feature = next(template.feature for template in TEMPLATES if template.rule is rule)
            assert report in feature.description, f"{report} is not listed in {feature.name}"


def test_names_of_scenarios_are_unique_within_a_feature():
    """pytest-bdd keeps only the last of two scenarios with one name."""
    for file in FILES:
        text = file.read_text(encoding="utf-8")
        titles = re.findall(r"^ *Scenario(?: Outline)?: (.*)$", text, re.MULTILINE)
        assert len(titles) == len(set(titles)), file
