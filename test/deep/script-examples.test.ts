import { readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { listenLocally } from "../support/local-server.ts";
import { expectInOrder, type PastedPages, programOf, startPastedPages } from "../support/pasted-pages.ts";
import { startGitHub } from "../support/providers/github.ts";
import { until } from "../support/until.ts";

const EXAMPLES = join(import.meta.dirname, "../../config/examples");

let pages: PastedPages;
beforeAll(async () => {
  pages = await startPastedPages();
});
afterAll(() => pages?.[Symbol.asyncDispose]());

const readExample = (file: string): Promise<string> => readFile(join(EXAMPLES, file), "utf8");

async function eventsOf(uid: string): Promise<readonly { readonly id: string; readonly type: string }[]> {
  const apps = await pages.gateway.api<{ id: string; uid: string }[]>("GET", "/apps");
  return pages.gateway.api("GET", `/apps/${apps.find((app) => app.uid === uid)?.id}/events`);
}

/** Plays Stripe's list of events. It is empty until `ids` has ids. */
async function startEventList(apiKey: string) {
  const ids: string[] = [];
  const server = createServer((request, response) => {
    if (request.headers.authorization !== `Bearer ${apiKey}`) return response.writeHead(401).end();
    const created = Math.floor(Date.now() / 1_000);
    const data = ids.map((id) => ({
      id,
      object: "event",
      created,
      type: "invoice.paid",
      data: { object: {} },
    }));
    response.writeHead(200, { "content-type": "application/json" });
    return response.end(JSON.stringify({ object: "list", data, has_more: false }));
  });
  return { ...(await listenLocally(server)), ids };
}

it("the example for Stripe receives a signed event, and publishes an event that only Stripe's list contains", async () => {
  await using list = await startEventList("rk_test_1");
  await writeFile(join(pages.dir, "webhook-secret.txt"), "whsec_1\n");
  await writeFile(join(pages.dir, "api-key.txt"), "rk_test_1\n");
  const script = (await readExample("stripe-reconcile.sh"))
    .replaceAll("https://api.stripe.com", list.origin)
    .replace('"reconciles"', '"settleSeconds": 0, "schedule": {"intervalSeconds": 5}, "reconciles"');
  const output = await pages.run(script);
  expectInOrder(output, ['"step":"address"', '"eventId"', '"uid":"stripe-missed"', '"eventUid":"stripe:*"']);
  const received = /"eventId":"(\w+)"/.exec(output)?.[1] ?? "";
  list.ids.push("evt_missed", received);
  await until(async () => (await eventsOf("stripe")).some(({ id }) => id === "evt_missed"));
});

it("the example for Slack routes an event to the customer whose workspace sent it", async () => {
  await writeFile(join(pages.dir, "signing-secret.txt"), "a signing secret\n");
  expectInOrder(await pages.run(await readExample("slack-customers.sh")), [
    ...['"uid":"slack-app"', "/hooks/ch_", '"uid":"acme"', '"uid":"globex"', '"status":200', '"app_mention"'],
  ]);
  expect(await eventsOf("acme")).toEqual([]);
});

it("the example for GitHub registers a webhook, and checks that it exists", async () => {
  await using github = await startGitHub({ clock: Date.now });
  await writeFile(join(pages.dir, "token.txt"), `${github.token}\n`);
  const script = await readExample("github-registration.sh");
  const output = await pages.run(`GITHUB_API=${github.url}\nset -- acme shop\n${script}`);
  expectInOrder(output, ['"step":"registration"', '"state":"active"', '"eventId"', '"state":"active"']);
  expect(github.hooks()).toHaveLength(1);
});

it("the example in Python is the program of the Python page, which a test runs", async () => {
  const example = await readExample("consumer.py");
  expect(example.slice(example.indexOf("\n") + 1)).toBe(programOf("python.md", "reader.py"));
});
