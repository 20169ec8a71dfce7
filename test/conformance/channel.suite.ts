import { describe, expect, it } from "vitest";
import { z } from "zod";
import { type CheckChannelDeps, checkChannel, findUnsharedFields } from "../../src/channels/check-channel.ts";
import type { ChannelKind } from "../../src/channels/kind.ts";
import { commonFields } from "../../src/event/channel.ts";
import { createLog } from "../../src/log.ts";
import { createOutbound } from "../../src/net/create-outbound.ts";
import { compileDefinitions } from "../../src/normalize/compile.ts";
import { readHere } from "../support/read-here.ts";

export interface ChannelSamples {
  readonly kind: ChannelKind;
  /** Settings that are accepted. */
  readonly config: Readonly<Record<string, unknown>>;
  /** Invalid settings, each with the setting that the error must name. */
  readonly refused: readonly (readonly [setting: string, config: object])[];
  /** Secret settings, and a text in them that must never be shown. */
  readonly secret?: { readonly config: object; readonly text: string };
}

const events = [{ type: "thing" }];

/** Describes the guarantees of every channel kind. */
export function describeChannelKind({ kind, config, refused, secret }: ChannelSamples): void {
  const deps: CheckChannelDeps = {
    channelKinds: new Map([[kind.kind, kind]]),
    presets: new Map(),
    checkDefinitions: async (source) => {
      const compiled = compileDefinitions(source);
      return compiled.ok ? [] : compiled.error;
    },
  };
  const check = (config: object, definitions: readonly { readonly type: string }[] = events) =>
    checkChannel(deps, { kind: kind.kind, config: { ...config }, events: definitions }, "org_1");
  const stored = async (config: object) => {
    const checked = await check(config);
    if (!checked.ok) throw new Error(JSON.stringify(checked.error));
    return checked.value;
  };

  describe(`the channel kind ${kind.kind}`, () => {
    it.each([
      ...refused,
      ["unknownField", { ...config, unknownField: 1 }] as const,
    ])("rejects an invalid setting, and names the field and the reason: %s", async (setting, wrong) => {
      const checked = await check(wrong);
      const findings = checked.ok ? [] : checked.error;
      expect(findings).toHaveLength(1);
      expect(`${findings[0]?.path}: ${findings[0]?.message}`).toContain(setting);
      expect(findings[0]?.message).toMatch(/.+/);
    });

    it("parses settings that it has stored earlier into the same settings", async () => {
      const { config: plain, secrets } = await stored({ ...config, ...secret?.config });
      const whole = { ...plain, ...secrets };
      expect(kind.configSchema.parse(JSON.parse(JSON.stringify(whole)))).toEqual(whole);
    });

    it("has settings that can be copied to a worker thread with structuredClone", async () => {
      const { config: plain, secrets } = await stored({ ...config, ...secret?.config });
      const parsed = kind.configSchema.parse({ ...plain, ...secrets });
      expect(structuredClone(parsed)).toEqual(parsed);
    });

    it("has a JSON Schema of its settings that describes every setting and rejects unknown ones", () => {
      const { properties = {}, additionalProperties } = z.toJSONSchema(kind.configSchema, { io: "input" });
      expect(additionalProperties).toBe(false);
      expect(Object.keys(properties)).toEqual(expect.arrayContaining(Object.keys(commonFields)));
      for (const [name, property] of Object.entries(properties)) {
        expect([name, typeof property === "object" && property.description]).toEqual([
          name,
          expect.any(String),
        ]);
      }
    });

    it("keeps secret settings out of its public settings, and rejects secret settings in a blueprint", async ({
      skip,
    }) => {
      if (secret === undefined) {
        expect(kind.secretFields).toEqual([]);
        return skip("the kind has no secret settings; a connection holds its credentials");
      }
      const { config: shown, secrets } = await stored({ ...config, ...secret.config });
      expect(JSON.stringify(shown)).not.toContain(secret.text);
      expect(JSON.stringify(secrets)).toContain(secret.text);
      const inBlueprint = { kind: kind.kind, config: { ...config, ...secret.config }, events };
      expect(findUnsharedFields(deps, inBlueprint).map(({ path }) => path)).toEqual(
        kind.secretFields.map((name) => `config.${name}`),
      );
    });

    it("accepts only paths in event definitions that begin with a root it declares, such as $headers", async () => {
      for (const name of kind.profile.roots.keys()) {
        const fixed = kind.profile.fixedPaths !== undefined;
        const checked = await check(config, [{ type: "a", ...(!fixed && { idPath: `$${name}` }) }] as never);
        expect([name, checked.ok]).toEqual([name, true]);
      }
      const checked = await check(config, [{ type: "a", idPath: "$unknownField" }] as never);
      expect(checked.ok ? [] : checked.error.map(({ path }) => path)).toEqual(["events[0].idPath"]);
    });

    it("either has an address that receives requests, or declares the origin that it calls and a cursor", async () => {
      const { config: shown } = await stored(config);
      expect(kind.originOf === undefined).toBe(kind.addressed);
      expect(kind.cursor === undefined).toBe(kind.addressed);
      expect(kind.originOf?.(shown) ?? "https://none.example").toMatch(/^https?:\/\/[^/]+$/);
    });

    it("can be started and stopped", async () => {
      await using outbound = createOutbound({ allowNetworks: [] });
      const runtime = await kind.start({
        outbound,
        clock: Date.now,
        log: createLog({ level: "silent" }),
        readInWorker: readHere(kind),
      });
      const { push, stream, polled } = runtime;
      const parts = [push, stream, polled].filter((part) => part !== undefined);
      expect(parts).toHaveLength(1);
      expect(push !== undefined).toBe(kind.addressed);
      await runtime[Symbol.asyncDispose]();
    });
  });
}
