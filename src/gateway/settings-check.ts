import { readStoredSettings } from "../channels/stored-settings.ts";
import { pageChannels } from "../data/channels/channels.ts";
import { channelFacts } from "../event/channel.ts";
import { startLoop } from "../lib/loop.ts";
import type { Foundation } from "./foundation.ts";

/**
 * Names at the start the channels whose stored settings this program would not accept: those that go on as they are stored, and
 * those that it cannot read, which are out of order until they are written anew. Secret settings are not looked at.
 */
export function startSettingsCheck(deps: Pick<Foundation, "db" | "channelKinds" | "metrics" | "log">) {
  const { db, channelKinds, metrics, log } = deps;
  let unfit = 0;
  metrics.observe(
    "inlet_channels_unfit",
    "Channels whose stored settings this program cannot read, as of its start",
    () => unfit,
  );

  async function check(signal: AbortSignal): Promise<void> {
    let found = 0;
    for await (const page of pageChannels(db)) {
      signal.throwIfAborted();
      for (const { config, ...channel } of page) {
        const kind = channelKinds.get(channel.kind);
        const read = kind && readStoredSettings(kind.settings, config);
        if (read?.ok && read.value.outdated.length === 0) continue;
        const facts = channelFacts(channel);
        if (read?.ok) {
          const details = read.value.outdated;
          log.warn(
            { event: "channel.outdated", ...facts, details },
            "channel has settings that are refused today",
          );
        } else {
          found++;
          const details = read?.error ?? [{ path: "kind", message: `there is no kind ${channel.kind}` }];
          log.error(
            { event: "channel.unfit", ...facts, details },
            "channel has settings that cannot be read",
          );
        }
      }
    }
    unfit = found;
  }

  return startLoop({
    step: check,
    everyMs: Number.POSITIVE_INFINITY,
    onFailing: (err) =>
      log.warn({ event: "channel.check_failing", err }, "stored settings cannot be checked"),
  });
}
