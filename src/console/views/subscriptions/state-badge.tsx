import type { Schemas } from "../../api/client.ts";
import { Badge, type Tone } from "../../kit/layout/page.tsx";

const TONES: Readonly<Record<Schemas["Subscription"]["state"], Tone>> = {
  active: "ok",
  paused: "info",
  failing: "bad",
};

export const StateBadge = ({ state }: Pick<Schemas["Subscription"], "state">) => (
  <Badge tone={TONES[state]}>{state}</Badge>
);
