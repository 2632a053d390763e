"""Lynx: generate, run, criticise, revise, verify; the closed loop of the paper in one forward."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dspy
from dspy.utils.exceptions import LMError

from lynx_dspy import config as configs
from lynx_dspy.config import LynxConfig
from lynx_dspy.engines.base import Database
from lynx_dspy.errors import BadInput, ModelError
from lynx_dspy.grounding.documents import Documents
from lynx_dspy.grounding.lookup import Source
from lynx_dspy.lm import adapter_for, explain
from lynx_dspy.lm.ledger import Ledger, at_round
from lynx_dspy.modules.candidates import Candidates, Sampler, agreement
from lynx_dspy.modules.checker import Checker
from lynx_dspy.modules.critic import Critic, Memory
from lynx_dspy.modules.generator import Draft, Generator
from lynx_dspy.modules.nearest import answering, artifact_files, restore_files
from lynx_dspy.modules.reviser import Reviser
from lynx_dspy.modules.verifier import Verdict, Verifier
from lynx_dspy.progress import report
from lynx_dspy.texts import encodable
from lynx_dspy.values import Attempt, FailureClass, Finding, Outcome, Status


@dataclass(slots=True)
class Trail:
    """What the loop leaves behind; `verdicts` are by round."""

    attempts: list[Attempt] = field(default_factory=list)
    verdicts: dict[int, Verdict] = field(default_factory=dict)
    memory: Memory = field(default_factory=Memory)


@dataclass(frozen=True, slots=True)
class Request:
    """One question with all that the loop needs to answer it."""

    question: str
    database: Database
    draft: Draft


class Lynx(dspy.Module):
    """Answer a question over a database with a verified program.

    Each part can be replaced (`ablations.py`); without a `config` the profile of the language model
    in `dspy.settings` is used.
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
    ) -> None:
        super().__init__()
        self.generator = generator or Generator()
        self.candidates = Candidates()
        self.checker = checker or Checker()
        self.critic = critic or Critic()
        self.reviser = reviser or Reviser()
        self.verifier = verifier or Verifier()
        self.config = config

    def forward(
        self,
        question: str,
        database: Database,
        documents: Documents | None = None,
        evidence: str = "",
        sources: Sequence[Source] = (),
    ) -> dspy.Prediction:
        """The best program found, its outcome, and how it came about.

        `sources` explain terms that documents and evidence leave open (`Glossary`, `Pack`,
        `Wikipedia` or your own).
        Fields: `code`, `outcome` (values.Outcome), `verified`, `agreement` (candidates with this
        result, and all), `explanation`, `mismatch`, `attempts` (tuple of values.Attempt),
        `knowledge`, `dropped` (what the model refused to see), `intent`, `patterns` (fixes that worked), `usage` (values.UsageReport),
        `seconds`. Raises `BadInput` for an unusable question and `ModelError` when the model
        cannot be reached; a program that fails is an outcome.
        """
        started = time.perf_counter()
        settings = self.config or configs.profile(_model_name())
        question = _usable(question, settings)
        ledger = Ledger()
        adapter = adapter_for(dspy.settings.lm, settings.adapter or None)
        near = answering(question, database.name)
        with configs.using(settings), ledger.recording(), near, dspy.context(adapter=adapter):
            try:
                draft = self.generator(
                    question, database, documents, encodable(evidence), sources
                )
                trail = self.close_loop(Request(question, database, draft))
            except LMError as error:
                raise ModelError(explain(error)) from error
        best = best_of(trail.attempts)
        verdict = trail.verdicts.get(best.round, Verdict(None))
        return dspy.Prediction(
            code=best.code,
            outcome=best.outcome,
            verified=bool(best.verified),
            agreement=agreement(trail.attempts, best),
            explanation=verdict.explanation,
            mismatch=verdict.mismatch,
            attempts=tuple(trail.attempts),
            knowledge=draft.knowledge,
            dropped=draft.dropped,
            intent=draft.intent,
            patterns=trail.memory.patterns,
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
        """Run, criticise and revise until a program stands or no round is left."""
        settings = configs.current()
        trail = Trail()
        attempts, corrections = trail.attempts, 0
        code, source, parse_failed = request.draft.code, "formulate", request.draft.parse_failed
        for round_ in range(settings.max_rounds + 1):
            with at_round(round_):
                # Run
                tried = self.run(request, code, round_, source)
                if round_ == 0 and settings.candidates > 1:
                    tried = self.candidates(tried, self.sampler(request))
                attempts += [a.with_(parse_failed=parse_failed) for a in tried]
                if attempts[-1].outcome.status is Status.UNAVAILABLE:
                    break

                # Verify
                if attempts[-1].outcome.ran:
                    trail.verdicts[round_] = self.judge(request, attempts[-1])
                    attempts[-1] = doubted(attempts[-1], trail.verdicts[round_])
                    if attempts[-1].failure_class is None or corrections == settings.verify_rounds:
                        break
                    corrections += 1

                # Criticise
                said = self.critic(trail.memory, last_of_rounds(attempts))
                trail.memory = said.memory
                attempts[-1] = attempts[-1].with_(delta=said.delta, suggestion=said.suggestion)
                if said.memory.stagnant >= settings.stagnation_rounds:
                    break

            # Revise
            if round_ < settings.max_rounds:
                with at_round(round_ + 1):
                    report("reviser.repair", _repairing(round_ + 1, settings, attempts[-1]))
                    reply = self.reviser(request.question, request.draft, attempts[-1], said)
                code, source = reply.code, "repair"
                parse_failed = bool(reply.get("parse_failed"))
        return trail

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
        outcome = request.database.execute(checked.code, configs.current().limits)
        failed = outcome.failure_class or _FALLBACK_CLASS.get(outcome.status)
        made.append(
            Attempt(round_, checked.code, outcome, source, failed, findings=checked.findings)
        )
        return made

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
    """The attempt with its verdict; a mismatch makes it a semantic failure."""
    if verdict.consistent is not False:
        return attempt.with_(verified=verdict.consistent)
    mismatch = Finding(FailureClass.SEMANTIC, verdict.mismatch or "does not answer the question")
    return attempt.with_(
        verified=False,
        failure_class=FailureClass.SEMANTIC,
        findings=(mismatch, *attempt.findings),
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
