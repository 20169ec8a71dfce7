import type { Schemas } from "../../api/client.ts";
import { Badge } from "../../kit/layout/page.tsx";
import { SOURCE_TONES } from "../../kit/text/tones.ts";

const WORDS: Readonly<Record<NonNullable<Schemas["Source"]["stateReason"]>, string>> = {
  noSubscription: "no subscription covers it",
  needsSetup: "a secret is missing",
  needsConnection: "a connection is missing",
  finished: "the server has ended its stream",
};

/** Reasons that a person has to act on. */
const MISSING: readonly (string | null)[] = ["noSubscription", "needsSetup", "needsConnection"];

export function SourceState({
  health,
  state,
  stateReason,
  silent,
}: Pick<Schemas["Source"], "health" | "state" | "stateReason" | "silent">) {
  return (
    <span class="row">
      <Badge tone={MISSING.includes(stateReason) ? "warn" : SOURCE_TONES[health]}>{health}</Badge>
      {silent && <Badge tone="warn">silent</Badge>}
      <span class="faint">{stateReason === null ? state : WORDS[stateReason]}</span>
    </span>
  );
}
