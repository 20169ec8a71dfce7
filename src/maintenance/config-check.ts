import type { ChannelKinds } from "../channels/kind.ts";
import { pageChannels } from "../data/channels/channels.ts";
import type { Queryable } from "../data/database.ts";
import { channelFacts } from "../event/channel.ts";
import { startLoop } from "../lib/loop.ts";
import { readStoredConfig } from "../lib/stored-config.ts";
import type { Log } from "../log.ts";
import type { Metrics } from "../metrics.ts";

export interface ConfigCheckDeps {
  readonly db: Queryable;
  readonly channelKinds: ChannelKinds;
  readonly metrics: Pick<Metrics, "observe">;
  readonly log: Log;
}

/**
 * Logs every channel whose stored config this version would reject in a new write. Such a config stays active if it can still be parsed.
 * Secrets are not checked.
 */
export function startConfigCheck({ db, channelKinds, metrics, log }: ConfigCheckDeps) {
  let unfit = 0;
  metrics.observe(
    "inlet_channels_unfit",
    "Channels whose stored settings could not be parsed at startup",
    () => unfit,
  );

  async function check(signal: AbortSignal): Promise<void> {
    let found = 0;
    for await (const page of pageChannels(db)) {
      signal.throwIfAborted();
      for (const { config, routing, ...channel } of page) {
        const kind = channelKinds.get(routing?.kind ?? channel.kind);
        const read = kind && readStoredConfig(kind.configSchema, config);
        if (read?.ok && read.value.outdated.length === 0) continue;
        const facts = channelFacts(channel);
        if (read?.ok) {
          const details = read.value.outdated;
          log.warn(
            { event: "channel.outdated", ...facts, details },
            "channel uses settings that are no longer valid",
          );
        } else {
          found++;
          const details = read?.error ?? [
            { path: "kind", message: `there is no channel kind ${channel.kind}` },
          ];
          log.error({ event: "channel.unfit", ...facts, details }, "channel settings cannot be parsed");
        }
      }
    }
    unfit = found;
  }

  return startLoop({
    step: check,
    everyMs: Number.POSITIVE_INFINITY,
    onFailing: (err) =>
      log.warn({ event: "channel.check_failing", err }, "stored channel settings could not be checked"),
  });
}
