import type { ChannelKind } from "../kind.ts";
import { sseCursorFormat } from "./cursor.ts";
import { sseSettings } from "./settings.ts";
import { createStreamSource } from "./stream-source.ts";

/** A connection is kept open to a stream of server-sent events. */
export const sse: ChannelKind = {
  kind: "sse",
  settings: sseSettings,
  secretSettings: [],
  addressed: false,
  cursor: sseCursorFormat,
  originOf: (settings) => new URL(sseSettings.parse(settings).url).origin,
  needsSetup: () => false,
  async start(deps) {
    return { stream: createStreamSource(deps), async [Symbol.asyncDispose]() {} };
  },
};
