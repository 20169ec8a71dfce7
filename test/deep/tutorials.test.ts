import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { createSession } from "better-sse";
import { expect, it } from "vitest";
import { listenLocally } from "../support/local-server.ts";
import { expectInOrder, startPastedPages } from "../support/pasted-pages.ts";
import { startGitHub } from "../support/providers/github.ts";
import { until } from "../support/until.ts";

it("the commands of the GitHub tutorial register a webhook, read a push, and remove the webhook", async () => {
  await using pages = await startPastedPages();
  await using github = await startGitHub({ clock: Date.now });
  await writeFile(join(pages.dir, "token.txt"), `${github.token}\n`);
  const script = pages
    .scriptOf("register-github.md")
    .replace("--token @token.txt", `--token @token.txt --base-url ${github.url}`);
  const [register = "", rest = ""] = script.split(/(?=^npx inlet events)/m);
  const [read = "", remove = ""] = rest.split(/(?=^npx inlet apps delete)/m);
  expectInOrder(await pages.run(register), ['"step":"registration"', '"state":"active"', '"eventId"']);
  expect(github.hooks()).toHaveLength(1);
  const [sent] = await github.deliver({ ref: "refs/heads/tutorial" }, "push");
  expect(sent?.status).toBe(200);
  expectInOrder(await pages.run(read), ["refs/heads/tutorial", "refs/heads/main", '"state":"active"']);
  await pages.run(remove);
  await until(() => github.hooks().length === 0);
});

it("the commands of the tutorial on streams and polls publish events of both, and pause the stream", async () => {
  await using pages = await startPastedPages();
  const upstream = createServer(async (request, response) => {
    if (request.url === "/stream") {
      const session = await createSession(request, response, { retry: null });
      session.push({ type: "edit", title: "A page" }, "message", "1");
    } else {
      const items = [{ id: "7", type: "PushEvent", payload: { ref: "refs/heads/main" } }];
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(items));
    }
  });
  await using local = await listenLocally(upstream);
  const script = pages
    .scriptOf("follow-and-poll.md")
    .replace("https://stream.wikimedia.org/v2/stream/recentchange", `${local.origin}/stream`)
    .replace("https://api.github.com/repos/nodejs/node/events", `${local.origin}/list`);
  const output = await pages.run(script);
  expectInOrder(output, [
    '"eventId":"1"',
    '"title":"A page"',
    '"state":"open"',
    '"state":"paused"',
    '"eventId":"7"',
    '"refs/heads/main"',
  ]);
  expect(await pages.gateway.api<unknown[]>("GET", "/apps")).not.toContainEqual(
    expect.objectContaining({ uid: "wikipedia" }),
  );
});
