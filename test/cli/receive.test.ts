import { expect, it } from "vitest";
import { createApi } from "../../src/cli/client/api.ts";
import type { Client } from "../../src/cli/client/command.ts";
import { findConnection } from "../../src/cli/receive/connect.ts";
import { type CalledApi, composePlan, type PlanOptions } from "../../src/cli/receive/plan.ts";
import { listReceiveArguments } from "../../src/http/docs/preset-commands.ts";
import { type Preset, readPresets } from "../../src/verify/presets.ts";
import { API_KEY } from "../support/gateway-process.ts";
import { openedCommands } from "./opened-commands.ts";

const { world } = openedCommands();

/** Separates the options from the other arguments of `inlet receive`. */
function parse(words: readonly string[]): readonly [args: readonly string[], options: PlanOptions] {
  const at = words.findIndex((word) => word.startsWith("--"));
  const named = at < 0 ? [] : words.slice(at);
  const options = Object.fromEntries(
    named.flatMap((word, index) => (word.startsWith("--") ? [[word.slice(2), named[index + 1]]] : [])),
  );
  return [at < 0 ? words : words.slice(0, at), options];
}

interface Created {
  readonly kind: string;
  readonly config: Readonly<Record<string, unknown>>;
}

/** Creates the connection of a provider's first registration, and returns it with the printed steps. */
async function connectTo(name: string, token: string): Promise<Created & { readonly printed: string }> {
  const { signal } = new AbortController();
  const api = createApi({ baseUrl: `${world.gateway.origin}/v1`, apiKey: API_KEY }, signal);
  const args = listReceiveArguments(readPresets().get(name) as Preset).find((words) =>
    words.includes("--token"),
  );
  const [words, options] = parse(args ?? []);
  const { called } = await composePlan(api, words as [string, ...string[]], options);
  const printed: unknown[] = [];
  const steps = { done: (...step: readonly unknown[]) => void printed.push(step) };
  const connected = await findConnection({ api } as Client, steps, called as CalledApi, {
    token,
    mayAsk: false,
    current: undefined,
    channel: name,
  });
  const { kind, config } = await api.get<Created>(`/connections/${connected?.id}`);
  return { kind, config, printed: JSON.stringify(printed) };
}

it.each([
  ["chargebee", "live_key:", "basic", "live_key"],
  ["zendesk", "you@example.com/token:key_1", "basic", "you@example.com/token"],
  ["zendesk", "key_1", "bearer", undefined],
  ["bitbucket", "key_1", "bearer", undefined],
])("creates a connection of %s with the token %s, and prints no part of it", async (name, token, kind, username) => {
  const created = await connectTo(name, token);
  expect(created).toMatchObject({ kind, config: username === undefined ? {} : { username } });
  for (const part of token.split(":")) if (part !== "") expect(created.printed).not.toContain(part);
});

it("the commands on the page of each provider name channels that the gateway accepts", async () => {
  const { signal } = new AbortController();
  const api = createApi({ baseUrl: `${world.gateway.origin}/v1`, apiKey: API_KEY }, signal);
  const rejected: string[] = [];
  let count = 0;
  for (const preset of readPresets().values())
    for (const words of listReceiveArguments(preset)) {
      count++;
      const [args, options] = parse(words);
      try {
        const plan = await composePlan(api, args as [string, ...string[]], options);
        await api.post("/blueprints", { title: "test", channels: [plan.channel] });
        expect(plan.isFetched).toBe(args[0] === "poll");
        const callsProvider = args.length > 1 || "token" in options || "connection" in options;
        expect(plan.registration !== undefined).toBe(callsProvider && !plan.isFetched);
      } catch (error) {
        rejected.push(`${words.join(" ")}: ${error}`);
      }
    }
  expect(rejected).toEqual([]);
  expect(count).toBeGreaterThan(170);
});
