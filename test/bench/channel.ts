import type { GatewayProcess } from "../support/gateway-process.ts";

export interface BenchChannel {
  readonly appId: string;
  readonly topic: string;
  /** Path of the channel's hook. */
  readonly path: string;
}

/** Definitions for GitHub's event types. The benchmarks send deliveries of the type `push`. */
export const definitionsOf = (types: readonly string[]) =>
  types.map((type) => ({
    type,
    typePath: "$headers['x-github-event']",
    idPath: "$headers['x-github-delivery']",
  }));

export async function installChannel(
  gateway: Pick<GatewayProcess, "api">,
  {
    uid = "plain",
    config = {},
    types = ["push"],
  }: {
    readonly uid?: string;
    readonly config?: object;
    readonly types?: readonly string[];
  } = {},
): Promise<BenchChannel> {
  const channel = { uid, kind: "webhook", title: uid, config, events: definitionsOf(types) };
  const blueprint = await gateway.api<{ id: string }>("POST", "/blueprints", {
    uid: `bench-${uid}`,
    title: "Bench",
    channels: [channel],
  });
  const app = await gateway.api<{
    readonly id: string;
    readonly organizationId: string;
    readonly channels: readonly { readonly url: string }[];
  }>("POST", "/apps/install", { blueprintId: blueprint.id });
  const [installed] = app.channels;
  if (installed === undefined) throw new Error("the app has no channel");
  return {
    appId: app.id,
    topic: `events.${app.organizationId}.apps.app.event_received.${app.id}.${uid}.push`,
    path: new URL(installed.url).pathname,
  };
}
