"""Lynx: generate, run, criticise, revise, verify; the closed loop of the paper in one forward."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dspy
from dspy.utils.exceptions import LMError

from lynx_dspy import config as configs
from lynx_dspy.config import LynxConfig
from lynx_dspy.engines.base import Database
from lynx_dspy.engines.static import has_errors
from lynx_dspy.errors import BadInput, ModelError
from lynx_dspy.grounding.documents import Documents
from lynx_dspy.grounding.lookup import Source
from lynx_dspy.lm import adapter_for, explain
from lynx_dspy.lm.ledger import Ledger, at_round
from lynx_dspy.modules.candidates import Candidates, Sampler, agreement, runners_up
from lynx_dspy.modules.checker import Checker
from lynx_dspy.modules.critic import Critic, Criticism, Memory
from lynx_dspy.modules.delta import Change
from lynx_dspy.modules.generator import Draft
from lynx_dspy.modules.languages import language_named, require_fitting
from lynx_dspy.modules.nearest import answering, artifact_files, restore_files
from lynx_dspy.modules.patterns import PatternStore
from lynx_dspy.modules.signals import signals
from lynx_dspy.modules.verifier import Verdict
from lynx_dspy.progress import report
from lynx_dspy.texts import encodable
from lynx_dspy.values import Attempt, Ended, FailureClass, Finding, Outcome, Status


@dataclass(slots=True)
class Trail:
    """What the loop leaves behind; `verdicts` are by round, `fault` is the model's if it failed."""

    attempts: list[Attempt] = field(default_factory=list)
    verdicts: dict[int, Verdict] = field(default_factory=dict)
    memory: Memory = field(default_factory=Memory)
    ended: Ended = Ended.ROUNDS
    fault: ModelError | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """One question with all that the loop needs to answer it; `spent` counts its tokens so far."""

    question: str
    database: Database
    draft: Draft
    spent: Callable[[], int] = lambda: 0


class Lynx(dspy.Module):
    """Answer a question over a database with a verified program.

    `language` is that of the program: sql, or python over the DataFrames of a folder. Each part can
    be replaced (`ablations.py`); without a `config` the profile of the language model in
    `dspy.settings` is used.
    """

    def __init__(
        self,
        *,
        generator: dspy.Module | None = None,
        checker: Checker | None = None,
        critic: dspy.Module | None = None,
        reviser: dspy.Module | None = None,
        verifier: dspy.Module | None = None,
        config: LynxConfig | None = None,
        language: str = "sql",
    ) -> None:
        super().__init__()
        parts = language_named(language)
        self.generator = generator or parts.generator()
        self.candidates = Candidates()
        self.checker = checker or parts.checker()
        self.critic = critic or Critic()
        self.reviser = reviser or parts.reviser()
        self.verifier = verifier or parts.verifier()
        self.config = config
        self.language = language

    def forward(
        self,
        question: str,
        database: Database,
        documents: Documents | None = None,
        evidence: str = "",
        sources: Sequence[Source] = (),
    ) -> dspy.Prediction:
        """The best program found, its outcome, and how it came about.

        `sources` explain terms that documents and evidence leave open: `Glossary`, `Pack`,
        `Wikipedia` or your own (`grounding/lookup.py`).

        Fields: `code`, `language`, `outcome` (values.Outcome), `verified`, `agreement` (candidates
        with this result, and all), `ended` (values.Ended), `fault` (the ModelError that broke the
        loop off, or None), `explanation`, `mismatch`, `judged` (the verifier's items), `attempts`
        (tuple of values.Attempt),
        `knowledge`, `dropped` (values.Dropped: what the model refused to be asked with), `intent`,
        `patterns` (fixes that worked), `usage` (values.UsageReport), `seconds`. Raises `BadInput`
        for an unusable question and `ModelError` when the model cannot be reached before there is
        a program; a program that fails is an outcome.
        """
        started = time.perf_counter()
        settings = self.config or configs.profile(_model_name())
        question = _usable(question, settings)
        require_fitting(self.language, database.dialect)
        if settings.fix_patterns:
            PatternStore(settings.fix_patterns).load()  # a broken file is told before tokens flow
        ledger = Ledger()
        adapter = adapter_for(dspy.settings.lm, settings.adapter or None)
        near = answering(question, database.name)
        with configs.using(settings), ledger.recording(), near, dspy.context(adapter=adapter):
            try:
                draft = self.generator(question, database, documents, encodable(evidence), sources)
                request = Request(question, database, draft, lambda: _tokens(ledger))
                trail = self.close_loop(request)
            except LMError as error:
                raise ModelError(explain(error)) from error
        best = best_of(trail.attempts)
        if settings.fix_patterns and best.outcome.ran and best.verified is not False:
            _remember(settings.fix_patterns, request, trail)
        verdict = trail.verdicts.get(best.round, Verdict(None))
        return dspy.Prediction(
            code=best.code,
            language=self.language,
            outcome=best.outcome,
            verified=bool(best.verified),
            agreement=agreement(trail.attempts, best),
            explanation=verdict.explanation,
            mismatch=verdict.mismatch,
            judged=verdict.items,
            ended=trail.ended,
            fault=trail.fault,
            attempts=tuple(trail.attempts),
            knowledge=draft.knowledge,
            dropped=draft.dropped,
            intent=draft.intent,
            patterns=tuple(fix.text for fix in trail.memory.patterns),
            usage=ledger.report(),
            seconds=time.perf_counter() - started,
        )

    def artifact_files(self) -> Mapping[str, Any]:
        """What an artifact keeps beside the predictors: demos to pick the nearest of."""
        return artifact_files(dict(self.named_predictors()))

    def restore_files(self, files: Mapping[str, Any]) -> None:
        """Take up what `artifact_files` gave. Raises `ArtifactError` for what does not fit."""
        restore_files(dict(self.named_predictors()), files)

    def close_loop(self, request: Request) -> Trail:
        """Run, criticise and revise until a program stands or the loop has to end.

        A model that fails once there is a program ends the loop with what was found so far.
        """
        trail = Trail()
        try:
            trail.ended = self.rounds(request, trail)
        except LMError as error:
            if not trail.attempts:
                raise
            trail.ended, trail.fault = Ended.UNAVAILABLE, ModelError(explain(error))
            trail.fault.__cause__ = error
        return trail

    def rounds(self, request: Request, trail: Trail) -> Ended:
        """The rounds of the loop, written into `trail`; why they ended."""
        settings = configs.current()
        reply = dspy.Prediction(code=request.draft.code, parse_failed=request.draft.parse_failed)
        corrections = 0
        for round_ in range(settings.max_rounds + 1):
            with at_round(round_):
                # Run
                attempt = self.attempt(request, trail, reply, round_)
                if attempt.outcome.status is Status.UNAVAILABLE:
                    return Ended.UNAVAILABLE

                # Verify
                if attempt.outcome.ran:
                    attempt = self.judged(request, trail, attempt)
                    if attempt.failure_class is None:
                        return self.accepted(request, trail, attempt)
                    if corrections == settings.verify_rounds:
                        return Ended.REJECTED
                    corrections += 1
                if round_ == settings.max_rounds:
                    break
                if 0 < settings.question_tokens <= request.spent():
                    return Ended.TOKENS

                # Criticise
                said = self.criticised(request, trail, attempt)
                if said.memory.stagnant >= settings.stagnation_rounds:
                    cycle = said.change is Change.CYCLE
                    return Ended.CYCLE if cycle else Ended.STAGNATION

            # Revise
            with at_round(round_ + 1):
                report("reviser.repair", _repairing(round_ + 1, settings, attempt))
                reply = self.reviser(request.question, request.draft, trail.attempts[-1], said)
        return Ended.ROUNDS

    def attempt(
        self, request: Request, trail: Trail, reply: dspy.Prediction, round_: int
    ) -> Attempt:
        """Run the program of a reply, in round 0 with its candidates; the attempt that stands."""
        source = "repair" if round_ else "formulate"
        tried = self.run(request, reply.code, round_, source)
        if round_ == 0 and configs.current().candidates > 1:
            tried = self.candidates(tried, self.sampler(request), request.spent)
        marks = {"parse_failed": bool(reply.get("parse_failed"))}
        reverted = tuple(reply.get("reverted") or ())
        trail.attempts += [a.with_(**marks, reverted=reverted) for a in tried]
        return trail.attempts[-1]

    def judged(self, request: Request, trail: Trail, attempt: Attempt) -> Attempt:
        """The latest attempt with the verifier's verdict on it.

        Of candidates, one with another result takes its place if that one is not rejected too.
        """
        others = runners_up(trail.attempts) if attempt.round == 0 else []
        verdict = trail.verdicts[attempt.round] = self.judge(request, attempt)
        trail.attempts[-1] = doubted(attempt, verdict)
        if verdict.consistent is not False:
            return trail.attempts[-1]
        for other in others:
            if 0 < configs.current().question_tokens <= request.spent():
                break
            verdict = self.judge(request, other)
            place = trail.attempts.index(other)
            trail.attempts[place] = doubted(other, verdict)
            if verdict.consistent is not False:
                trail.verdicts[attempt.round] = verdict
                trail.attempts.append(trail.attempts.pop(place))
                break
        return trail.attempts[-1]

    def accepted(self, request: Request, trail: Trail, attempt: Attempt) -> Ended:
        """The end of a loop whose program stands: the repair that led to it is validated."""
        rounds = last_of_rounds(trail.attempts)
        trail.memory = self.critic.settled(trail.memory, rounds, request.draft.schema)
        return Ended.VERIFIED if attempt.verified else Ended.RUNS

    def criticised(self, request: Request, trail: Trail, attempt: Attempt) -> Criticism:
        """What the Critic says of the latest attempt."""
        rounds = last_of_rounds(trail.attempts)
        said: Criticism = self.critic(trail.memory, rounds, request.draft.schema)
        trail.memory = said.memory
        trail.attempts[-1] = attempt.with_(delta=said.delta, suggestion=said.suggestion)
        return said

    def sampler(self, request: Request) -> Sampler:
        """Writes and runs further candidates for the request."""
        temperature = configs.current().candidate_temperature

        def sample(k: int) -> Sequence[Attempt]:
            draft = self.generator.write(
                request.question, request.draft, temperature=temperature, rollout_id=k
            )
            return self.run(request, draft.code, 0, "sample")

        return sample

    def run(self, request: Request, code: str, round_: int, source: str) -> Sequence[Attempt]:
        """Check, mend and run one program: one attempt, or two where the check mended it."""
        checked = self.checker(code, request.draft.schema)
        made: list[Attempt] = []
        if checked.changes:
            made.append(_refused(code, round_, source, checked.before))
            source = "static"
        report("engine", "running the program")
        asked = request.database.dry_run(checked.code)
        outcome = request.database.execute(checked.code, configs.current().limits)
        failed = outcome.failure_class or _FALLBACK_CLASS.get(outcome.status)
        findings = (*checked.findings, *asked)
        if not request.database.runs and has_errors(findings):
            return [*made, _refused(checked.code, round_, source, findings)]
        attempt = Attempt(round_, checked.code, outcome, source, failed, findings=findings)
        odd = signals(checked.code, outcome, request.draft.schema)
        return [*made, attempt.with_(signals=odd)]

    def judge(self, request: Request, attempt: Attempt) -> Verdict:
        """The rubber duck's verdict; a result without rows is doubted before it is explained."""
        if attempt.outcome.status is Status.EMPTY and attempt.findings:
            return Verdict(False, mismatch=attempt.findings[0].message)
        verdict: Verdict = self.verifier(request.question, request.draft, attempt)
        return verdict


_FALLBACK_CLASS = {
    Status.BLOCKED: FailureClass.SYNTAX,
    Status.NO_PROGRAM: FailureClass.SYNTAX,
    Status.TIMEOUT: FailureClass.SEMANTIC,
    Status.ERROR: FailureClass.SEMANTIC,
}


def _refused(code: str, round_: int, source: str, findings: Sequence[Finding]) -> Attempt:
    """The attempt that the static check stopped before it ran."""
    first = findings[0] if findings else Finding(FailureClass.SYNTAX, "not in this dialect")
    outcome = Outcome(Status.ERROR, error=first.message, failure_class=first.failure_class)
    return Attempt(round_, code, outcome, source, first.failure_class, findings=tuple(findings))


def doubted(attempt: Attempt, verdict: Verdict) -> Attempt:
    """The attempt with its verdict; what is violated makes it a semantic failure."""
    if verdict.consistent is not False:
        return attempt.with_(verified=verdict.consistent, doubt=verdict.doubt)
    return attempt.with_(
        verified=False,
        doubt=verdict.doubt,
        failure_class=FailureClass.SEMANTIC,
        findings=(*verdict.findings, *attempt.findings),
    )


def last_of_rounds(attempts: Sequence[Attempt]) -> tuple[Attempt, ...]:
    """One attempt a round: what was run, without what the static check stopped."""
    return tuple({a.round: a for a in attempts}.values())


def best_of(attempts: Sequence[Attempt]) -> Attempt:
    """The attempt to answer with: verified > runs with rows > runs > fails.

    The later of equals wins: a diagnosis asked for it, or the other candidates agreed on it.
    """
    position = max(range(len(attempts)), key=lambda i: (_rank(attempts[i]), i))
    return attempts[position]


def _rank(attempt: Attempt) -> int:
    if not attempt.outcome.ran:
        return 0
    if attempt.verified:
        return 3
    return 2 if attempt.outcome.status is Status.OK else 1


def _tokens(ledger: Ledger) -> int:
    return ledger.report().total.total_tokens


def _remember(path: str, request: Request, trail: Trail) -> None:
    """Keep the fixes of an answered question; an answer is not lost where they cannot be."""
    try:
        schema, lm = request.draft.schema, _model_name()
        PatternStore(path).add(trail.memory.patterns, schema, request.question, lm)
    except BadInput as error:
        report("critic.patterns", str(error))


def _repairing(round_: int, settings: LynxConfig, attempt: Attempt) -> str:
    return f"repair {round_}/{settings.max_rounds}: {attempt.outcome.error or 'mismatch'}"


def _model_name() -> str:
    lm = dspy.settings.lm
    if lm is None:
        raise ModelError(
            "No language model is set. Use `with dspy.context(lm=lynx.lm()):` or `dspy.configure`."
        )
    return str(lm.model)


def _usable(question: str, settings: LynxConfig) -> str:
    question = encodable(question).strip()
    if not question:
        raise BadInput("The question is empty. Ask it in one or more words.")
    if len(question) > settings.max_question_chars:
        raise BadInput(
            f"The question has {len(question):,} characters; at most "
            f"{settings.max_question_chars:,} are taken. Put background into documents or evidence."
        )
    return question
