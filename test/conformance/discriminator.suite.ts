import { describe, expect, it } from "vitest";
import { pollingConfigSchema } from "../../src/channels/polling/config/config.ts";
import { getDiscriminator } from "../../src/channels/polling/discriminators/discriminators.ts";
import { findingsOf } from "../../src/lib/findings.ts";
import { type Config, PollRig } from "../channels/polling/support.ts";
import { PollUpstream, type View } from "../support/poll-upstream.ts";

export interface DiscriminatorSamples {
  readonly config: Config["discriminator"];
  /** The path of the upstream that the channel polls. */
  readonly path: "/rows" | "/changes" | "/document";
  readonly query?: Readonly<Record<string, string>>;
  readonly view?: Partial<View>;
  readonly paged?: Config["pagination"];
  /** Invalid settings of the discriminator, each with the channel setting that the error must name. */
  readonly refused: readonly (readonly [setting: string, settings: object, changes?: object])[];
}

/** Describes the guarantees of every discriminator. */
export function describeDiscriminator(samples: DiscriminatorSamples): void {
  const { config, path, query = {}, view, paged } = samples;
  const configAt = (origin: string): Config => ({
    request: { url: `${origin}${path}`, query: { ...query } },
    itemsPath: "$.rows",
    itemId: "$.id",
    startAt: "earliest",
    discriminator: config,
    ...(paged && { pagination: paged }),
  });

  async function open() {
    const upstream = await PollUpstream.start();
    upstream.clear(view);
    const rig = () => new PollRig({ config: configAt(upstream.origin), clock: () => upstream.nowMs });
    return { upstream, rig, [Symbol.asyncDispose]: () => upstream[Symbol.asyncDispose]() };
  }

  describe(`polling that finds new items by ${config.by}`, () => {
    it("publishes each new item exactly once", async () => {
      await using server = await open();
      const rig = server.rig();
      const made: string[] = [];
      for (const count of [1, 0, 7, 2, 0, 4]) {
        for (let at = 0; at < count; at++) {
          server.upstream.nowMs += 1_000;
          made.push(server.upstream.insert().id);
        }
        expect(await rig.pollAll()).toMatchObject({ kind: "done" });
        expect(rig.log.map(({ id }) => id).toSorted()).toEqual(made);
      }
    });

    it("continues at the stored cursor, even in another worker process", async () => {
      await using server = await open();
      const [first, second] = [server.rig(), server.rig()];
      for (let at = 0; at < 4; at++) server.upstream.insert();
      await first.pollAll();
      second.cursor = first.cursor;
      const { id } = server.upstream.insert();
      await second.pollAll();
      expect(second.log.map((published) => published.id)).toEqual([id]);
    });

    it("publishes an item in a later poll if writing the item failed at first", async () => {
      await using server = await open();
      const rig = server.rig();
      const { id } = server.upstream.insert();
      rig.crashes = ["refused"];
      expect(await rig.poll()).toBeUndefined();
      expect([rig.log, rig.cursor]).toEqual([[], undefined]);
      await rig.pollAll();
      expect(rig.log.map((published) => published.id)).toEqual([id]);
    });

    it("shows a short position instead of all the item keys that it has stored", async () => {
      await using server = await open();
      const rig = server.rig();
      server.upstream.insert();
      await rig.pollAll();
      const { by, position } = JSON.parse(rig.cursor ?? "");
      expect(by).toBe(config.by);
      const shown = JSON.stringify(getDiscriminator(by).show(position));
      expect(shown.length).toBeLessThan(100);
    });

    for (const [setting, other, changes] of samples.refused) {
      it(`rejects an invalid ${setting}, and names that setting`, () => {
        const config = { ...configAt("https://api.example.com"), discriminator: other, ...changes };
        const parsed = pollingConfigSchema.safeParse(config);
        const findings = parsed.success ? [] : findingsOf(parsed.error, config);
        expect(findings.map(({ path: at }) => at)).toEqual([setting]);
        expect(findings[0]?.message).toEqual(expect.any(String));
      });
    }
  });
}
