import type { Schemas } from "../../api/client.ts";
import { Badge } from "../../kit/layout/page.tsx";
import { CHANNEL_TONES } from "../../kit/text/tones.ts";

type State = Schemas["Channel"]["state"];

const WORDS: Readonly<Partial<Record<State, string>>> = {
  needsSetup: "needs secret",
  needsConnection: "needs connection",
  needsReauth: "needs sign-in",
};

export const ChannelState = ({ state }: { readonly state: State }) => (
  <Badge tone={CHANNEL_TONES[state]}>{WORDS[state] ?? state}</Badge>
);
