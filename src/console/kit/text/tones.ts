import type { Schemas } from "../../api/client.ts";
import type { Tone } from "../layout/page.tsx";

type Tones<State extends string> = Readonly<Record<State, Tone>>;

export const CHANNEL_TONES: Tones<Schemas["Channel"]["state"]> = {
  active: "ok",
  paused: "plain",
  idle: "plain",
  needsSetup: "warn",
  needsConnection: "warn",
  needsReauth: "warn",
  error: "bad",
};

export const CONNECTION_TONES: Tones<Schemas["Connection"]["state"]> = {
  ok: "ok",
  needsReauth: "warn",
  error: "bad",
};

export const SUBSCRIPTION_TONES: Tones<Schemas["Subscription"]["state"]> = {
  active: "ok",
  paused: "plain",
  failing: "bad",
};

export const SOURCE_TONES: Tones<Schemas["Source"]["health"]> = {
  healthy: "ok",
  retrying: "warn",
  failing: "bad",
  stopped: "plain",
};

export const REGISTRATION_TONES: Tones<Schemas["Registration"]["state"]> = {
  none: "plain",
  suspended: "warn",
  creating: "info",
  active: "ok",
  renewing: "info",
  lapsed: "warn",
  failed: "bad",
  removing: "plain",
};
