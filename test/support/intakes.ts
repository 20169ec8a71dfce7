import { createHmac } from "node:crypto";
import { type HookResponse, post } from "./deliver.ts";
import type { OpenApi } from "./documented.ts";

const SECRET = "a secret that the provider knows";

type OwnerApi = <T>(method: string, path: string, body?: object) => Promise<T>;

export interface Install {
  readonly appId: string;
  readonly topic: string;
  readonly url: string;
  readonly organizationId: string;
  // biome-ignore lint/suspicious/noExplicitAny: an API response
  readonly call: (method: string, path: string, body?: object) => Promise<any>;
}

export interface IntakeFixture {
  readonly blueprintId: string;
  readonly url: string;
  /** Sends a signed delivery to the intake's address. */
  readonly send: (body: unknown, headers?: Readonly<Record<string, string>>) => Promise<HookResponse>;
  readonly signed: (text: string) => Readonly<Record<string, string>>;
  /** Creates an organization that can install the blueprint. */
  readonly addOrganization: (name: string) => Promise<Tenant>;
  readonly setKeys: (install: Pick<Install, "appId">, keys: readonly string[]) => Promise<OpenApi>;
}

export interface Tenant {
  readonly organizationId: string;
  readonly call: Install["call"];
  readonly install: () => Promise<Install>;
}

/** A channel whose items are the elements of `events`, and whose event id is the item's `id`. */
export const INTAKE_CHANNEL = {
  uid: "main",
  kind: "webhook",
  config: {
    verification: { scheme: "hmac", name: "x-signature", encoding: "hex" },
    itemsPath: "$.events",
    limits: { requestsPerSecond: 100_000 },
  },
  events: [{ type: "changed", idPath: "$.id" }],
};

/** Creates a blueprint with an intake, and a public store that offers it to other organizations. */
export async function createIntake(
  { origin, api }: { readonly origin: string; readonly api: OwnerApi },
  {
    channel = INTAKE_CHANNEL,
    ...settings
  }: {
    readonly channel?: object;
    readonly routeBy?: readonly string[];
    readonly trustUnsigned?: boolean;
    readonly config?: object;
  } & object = {},
): Promise<IntakeFixture> {
  const blueprint = await api<OpenApi>("POST", "/blueprints", { title: "Provider", channels: [channel] });
  const intake = await api<OpenApi>("PUT", `/blueprints/${blueprint.id}/intake`, {
    channel: "main",
    routeBy: ["$.team"],
    ...settings,
    config: { secrets: [{ value: SECRET }], ...("config" in settings ? settings.config : {}) },
  });
  const store = await api<OpenApi>("POST", "/stores", { name: `Store ${blueprint.id}`, isPublic: true });
  const artifact = await api<OpenApi>("POST", "/stores/artifacts", {
    kind: "blueprint",
    title: "Provider",
    blueprintId: blueprint.id,
    storeId: store.id,
  });
  const signed = (text: string) => ({
    "x-signature": createHmac("sha256", SECRET).update(text).digest("hex"),
  });
  return {
    blueprintId: blueprint.id,
    url: intake.url,
    signed,
    send(body, headers = {}) {
      const text = typeof body === "string" ? body : JSON.stringify(body);
      return post(intake.url, text, { ...signed(text), ...headers });
    },
    async addOrganization(name) {
      const made = await api<OpenApi>("POST", "/organizations", { name });
      const call: Install["call"] = async (method, path, body) => {
        const response = await fetch(`${origin}/v1${path}`, {
          method,
          headers: { authorization: `Bearer ${made.apiKey.key}`, "content-type": "application/json" },
          ...(body !== undefined && { body: JSON.stringify(body) }),
        });
        if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
        return response.json();
      };
      return {
        organizationId: made.id,
        call,
        async install() {
          const app = await call("POST", "/apps/install", { artifactId: artifact.id });
          const [topic] = await call("GET", `/apps/${app.id}/topics`);
          const { url } = app.channels[0];
          return { appId: app.id, topic: topic.topic, url, organizationId: made.id, call };
        },
      };
    },
    setKeys: ({ appId }, keys) =>
      api<OpenApi>("PUT", `/blueprints/${blueprint.id}/installs/${appId}/route-keys`, { keys }),
  };
}
