import type { Schemas } from "../../api/client.ts";
import { Badge, type Tone } from "../../kit/layout/page.tsx";

type State = Schemas["Channel"]["state"];

const TONES: Readonly<Record<State, Tone>> = {
  active: "ok",
  paused: "info",
  idle: "plain",
  needsSetup: "warn",
  needsConnection: "warn",
  needsReauth: "bad",
  error: "bad",
};

const WORDS: Readonly<Partial<Record<State, string>>> = {
  needsSetup: "needs secret",
  needsConnection: "needs connection",
  needsReauth: "needs sign-in",
};

export const ChannelState = ({ state }: { readonly state: State }) => (
  <Badge tone={TONES[state]}>{WORDS[state] ?? state}</Badge>
);
