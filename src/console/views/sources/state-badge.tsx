import type { Schemas } from "../../api/client.ts";
import { Badge } from "../../kit/layout/page.tsx";
import { toneOfSource } from "../../kit/text/tones.ts";

const WORDS: Readonly<Record<NonNullable<Schemas["Source"]["stateReason"]>, string>> = {
  noSubscription: "no subscription covers it",
  needsSetup: "a secret is missing",
  needsConnection: "a connection is missing",
};

export function SourceState({
  state,
  stateReason,
  silent,
}: Pick<Schemas["Source"], "state" | "stateReason" | "silent">) {
  return (
    <span class="row">
      <Badge tone={stateReason === null ? toneOfSource(state) : "warn"}>{state}</Badge>
      {silent && <Badge tone="warn">silent</Badge>}
      {stateReason !== null && <span class="faint">{WORDS[stateReason]}</span>}
    </span>
  );
}
