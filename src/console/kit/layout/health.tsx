import type { Schemas } from "../../api/client.ts";
import { formatCount } from "../text/numbers.ts";
import { viewHref } from "./links.ts";
import { MaybeLink } from "./maybe-link.tsx";
import { Badge } from "./page.tsx";

type Summary = Schemas["AppSummary"];

const TONES = { ok: "ok", warning: "warn", error: "bad" } as const;

/** Badge with the number of an app's problems, such as `2 problems`. */
export const HealthBadge = ({ health, openProblems }: Pick<Summary, "health" | "openProblems">) => (
  <Badge tone={TONES[health]}>
    {openProblems === 0
      ? "ok"
      : `${formatCount(openProblems)} ${openProblems === 1 ? "problem" : "problems"}`}
  </Badge>
);

/** `HealthBadge` that links to the problems. */
export const Health = ({ app }: { readonly app: Summary }) => (
  <MaybeLink href={app.openProblems === 0 ? undefined : viewHref("/problems", {}, { appId: app.id })}>
    <HealthBadge {...app} />
  </MaybeLink>
);
