import type { Schemas } from "../../api/client.ts";
import { Badge, type Tone } from "../../kit/layout/page.tsx";

type State = Schemas["Source"]["state"];

const TONES: Readonly<Record<State, Tone>> = {
  open: "ok",
  waiting: "ok",
  connecting: "info",
  paused: "info",
  idle: "plain",
  error: "bad",
  needsReauth: "bad",
};

const WORDS: Readonly<Record<NonNullable<Schemas["Source"]["stateReason"]>, string>> = {
  noSubscription: "no subscription covers it",
  needsSetup: "a secret is missing",
  needsConnection: "a connection is missing",
};

/** The state, and what is missing for it to run. */
export function SourceState({
  state,
  stateReason,
  silent,
}: Pick<Schemas["Source"], "state" | "stateReason" | "silent">) {
  return (
    <span class="row">
      <Badge tone={stateReason === null ? TONES[state] : "warn"}>{state}</Badge>
      {silent && <Badge tone="warn">silent</Badge>}
      {stateReason !== null && <span class="faint">{WORDS[stateReason]}</span>}
    </span>
  );
}
