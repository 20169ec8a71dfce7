import { expect, it } from "vitest";
import { createApi } from "../../src/cli/client/api.ts";
import { composePlan, type PlanOptions } from "../../src/cli/receive/plan.ts";
import { listReceiveArguments } from "../../src/http/docs/preset-commands.ts";
import { readPresets } from "../../src/verify/presets.ts";
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
