import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, expect, it } from "vitest";
import { createHandlerRequest } from "../../src/event/handler-request.ts";
import { itDeep } from "../support/deep-run.ts";
import { freePort } from "../support/free-port.ts";
import { givenGateway } from "../support/given-gateway.ts";
import { startHandlerServer } from "../support/handler-server.ts";
import { opened } from "../support/opened.ts";
import { programOf, readPage, shellBlocksOf, signedInTo } from "../support/pasted-pages.ts";
import { until } from "../support/until.ts";

const PAGE = "problem-alerts.md";
const OFTEN = { everyMs: 50, slowEveryMs: 50, openAfterMs: 0, resolveAfterMs: 0 };

const gateway = givenGateway(
  { INLET_ALLOW_NETWORKS: "127.0.0.0/8" },
  {
    problemTiming: OFTEN,
    housekeeperTiming: { tickMs: 50 },
    handlersTiming: { firstRetryMs: 50, mostRetryMs: 100 },
  },
);
/** Plays the part of both Slack and the mail service. */
const outside = opened(startHandlerServer);
const dir = opened(async () => {
  const path = await mkdtemp(join(tmpdir(), "inlet-docs-"));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
});

beforeAll(async () => {
  for (const name of ["relay.mjs", "to-slack.mjs", "to-email.mjs"])
    await writeFile(join(dir.path, name), programOf(PAGE, name));
  const apps = () => gateway.api<readonly { isSystem: boolean }[]>("GET", "/apps");
  await until(async () => (await apps()).some(({ isSystem }) => isSystem));
});

async function startRelay(target: string, env: Readonly<Record<string, string>>) {
  const port = await freePort();
  const child: ChildProcess = spawn(process.execPath, ["relay.mjs", target], {
    cwd: dir.path,
    env: { ...env, PORT: String(port) },
    stdio: ["ignore", "inherit", "inherit"],
  });
  const url = `http://127.0.0.1:${port}/`;
  await until(() =>
    fetch(url, { method: "POST" }).then(
      ({ status }) => status === 401,
      () => false,
    ),
  );
  return {
    url,
    async [Symbol.asyncDispose]() {
      child.kill();
      await once(child, "exit");
    },
  };
}

itDeep(
  "the commands of the page on problem alerts start a relay that posts the start and end of a problem to Slack",
  async () => {
    const port = await freePort();
    const pasted = shellBlocksOf(readPage(PAGE)).replaceAll(
      "http://127.0.0.1:8090",
      `http://127.0.0.1:${port}`,
    );
    const shell = `${signedInTo(gateway.origin, dir.path)}${pasted}\ncat handler-secret.txt`;
    const { stdout } = await promisify(execFile)("sh", ["-euc", shell], { cwd: dir.path });
    const secret = stdout.trim();
    expect(secret).toMatch(/^whsec_/);

    // Slack's first response is a 429, so the relay has to retry.
    outside.answers.set("/slack", (_, times) => ({ status: times === 1 ? 429 : 200 }));
    const child = spawn(process.execPath, ["relay.mjs", "./to-slack.mjs"], {
      cwd: dir.path,
      env: { SLACK_URL: outside.urlOf("/slack"), HANDLER_SECRET: secret, PORT: String(port) },
      stdio: ["ignore", "inherit", "inherit"],
    });
    try {
      const { id } = await gateway.api<{ id: string }>("POST", "/connections", {
        name: "Calendar",
        kind: "oauth2",
        allowedOrigins: ["https://api.example.com"],
        config: {
          grant: "authorizationCode",
          clientId: "inlet",
          clientSecret: "secret",
          tokenEndpoint: "https://id.example.com/token",
          authorizationEndpoint: "https://id.example.com/authorize",
        },
      });
      const texts = () => outside.taken("/slack").map(({ body }) => JSON.parse(body).text);
      await until(() => texts().some((text) => text.startsWith("New: connection_needs_reauth")));
      await gateway.api("DELETE", `/connections/${id}`);
      await until(() => texts().some((text) => text.startsWith("Over: connection_needs_reauth")));
    } finally {
      child.kill();
      await once(child, "exit");
    }
  },
);

it("the documented e-mail relay sends signed problems, responds with an error if sending fails, and rejects unsigned problems", async () => {
  const secret = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
  await using relay = await startRelay("./to-email.mjs", {
    HANDLER_SECRET: secret,
    MAIL_URL: outside.urlOf("/mail"),
    MAIL_TOKEN: "token",
    MAIL_FROM: "inlet@example.com",
    MAIL_TO: "you@example.com",
  });
  const problem = {
    kind: "channel_silent",
    message: "No event came.",
    suggestedAction: "Look at its sender.",
  };
  const send = async (signedWith: string) => {
    const fields = ["id", "prob_1.opened", "type", "channel_silent.opened", "data", JSON.stringify(problem)];
    const event = { topic: "t", entryId: "1-0", fields };
    const options = { url: relay.url, secret: signedWith, subscriptionId: "sub_1", atMs: Date.now() };
    const { headers = {}, body } = createHandlerRequest(event, options);
    return fetch(relay.url, { method: "POST", headers, body: String(body) });
  };
  expect((await send(secret)).status).toBe(204);
  const [mail] = outside.at("/mail");
  expect(mail?.headers).toMatchObject({ authorization: "Bearer token", "idempotency-key": "prob_1.opened" });
  expect(JSON.parse(mail?.body ?? "")).toEqual({
    from: "inlet@example.com",
    to: ["you@example.com"],
    subject: "Inlet: channel_silent has come up",
    text: "No event came.\n\nLook at its sender.\n",
  });
  outside.answers.set("/mail", () => ({ status: 429, headers: { "retry-after": "30" } }));
  const refused = await send(secret);
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([502, "30"]);
  expect((await send(`whsec_${Buffer.alloc(32, 8).toString("base64")}`)).status).toBe(401);
});
