import { describe, expect, it } from "vitest";
import { createTestApi } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";

const api = opened(createTestApi);

const config = { preset: "github", stream: "issues", params: { owner: "octo", repo: "demo" } };
const issues = { uid: "issues", kind: "polling", config };

async function givenBlueprint(channel: object = issues): Promise<string> {
  return (await api.call.post("/blueprints", { title: "GitHub", channels: [channel] })).id;
}

async function givenConnection(origin = "https://api.github.com"): Promise<string> {
  const connection = { name: "c", kind: "bearer", config: { token: "t" }, allowedOrigins: [origin] };
  return (await api.call.post("/connections", connection)).id;
}

const install = async (body: object = {}) =>
  api.call.post("/apps/install", { blueprintId: await givenBlueprint(), ...body });

describe("a channel that reads a stream of a preset", () => {
  it("is returned with its own settings only, and has the definitions of the stream", async () => {
    const app = await install();
    expect(app.channels).toMatchObject([
      {
        config: { ...config, connection: "required" },
        events: [{ type: "issue" }],
        state: "needsConnection",
      },
    ]);
    expect(app.channels[0].config).not.toHaveProperty("request");
    expect(app.channels[0].config).not.toHaveProperty("schedule");
  });

  it("keeps definitions of its own", async () => {
    const blueprintId = await givenBlueprint({ ...issues, events: [{ type: "changed" }] });
    const app = await api.call.post("/apps/install", { blueprintId });
    expect(app.channels).toMatchObject([{ events: [{ type: "changed" }] }]);
  });

  it("reads another list after its parameters changed", async () => {
    const { id, channels } = await install();
    const path = `/apps/${id}/channels/${channels[0].id}`;
    const changed = await api.call.put(path, {
      config: { params: { repo: "other" }, schedule: { intervalSeconds: 600 } },
    });
    expect(changed.config).toEqual({
      ...config,
      params: { owner: "octo", repo: "other" },
      schedule: { intervalSeconds: 600 },
      connection: "required",
    });
    const { status, body } = await api.call("PUT", path, { config: { params: { repo: "a/b" } } });
    expect([status, body.details]).toMatchObject([400, [{ path: "config.params.repo" }]]);
  });

  it("only accepts connections to the origin that the stream calls", async () => {
    const blueprintId = await givenBlueprint();
    const elsewhere = await givenConnection("https://api.example.com");
    const attempt = await api.call("POST", "/apps/install", {
      blueprintId,
      channels: { issues: { connectionId: elsewhere } },
    });
    expect(attempt.body.details).toMatchObject([
      { path: "channels.issues.connectionId", message: expect.stringContaining("https://api.github.com") },
    ]);
    const connectionId = await givenConnection();
    const app = await install({ channels: { issues: { connectionId } } });
    expect(app.channels).toMatchObject([{ connectionId, state: "active" }]);
  });

  it("gets parameters from the installation, and keeps them when the app is upgraded", async () => {
    const blueprintId = await givenBlueprint();
    const channels = { issues: { params: { repo: "own" } } };
    const app = await api.call.post("/apps/install", { blueprintId, channels });
    const params = { owner: "octo", repo: "own" };
    expect(app.channels).toMatchObject([{ config: { params } }]);
    await api.call.put(`/blueprints/${blueprintId}`, {
      channels: [{ ...issues, config: { ...config, schedule: { intervalSeconds: 300 } } }],
    });
    const upgraded = await api.call.post(`/apps/${app.id}/upgrade`, {});
    expect(upgraded.channels).toMatchObject([{ config: { params, schedule: { intervalSeconds: 300 } } }]);
  });

  it("gets the blueprint's parameters again if the blueprint changes to another stream", async () => {
    const blueprintId = await givenBlueprint();
    const channels = { issues: { params: { repo: "own" } } };
    const app = await api.call.post("/apps/install", { blueprintId, channels });
    await api.call.put(`/blueprints/${blueprintId}`, {
      channels: [{ ...issues, config: { ...config, stream: "events" } }],
    });
    const upgraded = await api.call.post(`/apps/${app.id}/upgrade`, {});
    expect(upgraded.channels).toMatchObject([{ config: { ...config, stream: "events" } }]);
  });

  it("names the invalid parameter of an installation", async () => {
    const blueprintId = await givenBlueprint();
    const channels = { issues: { params: { owner: "a b", team: "x" } } };
    const { status, body } = await api.call("POST", "/apps/install", { blueprintId, channels });
    expect([status, body.details]).toMatchObject([
      400,
      [
        { path: "channels.issues.params.owner" },
        { path: "channels.issues.params.team", message: "is not a known field" },
      ],
    ]);
  });
});

it("the streams of a preset are listed with the schema of their parameters", async () => {
  const { streams } = await api.call.get("/presets/github");
  expect(streams).toMatchObject([
    {
      name: "events",
      title: expect.any(String),
      params: { required: ["owner", "repo"] },
      connection: { kinds: ["bearer", "oauth2"] },
    },
    { name: "issues", config: { discriminator: { by: "timestamp" } }, events: [{ type: "issue" }] },
  ]);
});
