import type { Command } from "commander";
import type { CommandContext } from "../command-context.ts";

/** Module of a command. `define` only declares the arguments, so that the implementation is loaded only when the command runs. */
export interface CommandModule {
  readonly define: (command: Command, context: CommandContext) => void | Promise<void>;
}

export interface CommandEntry {
  readonly name: string;
  readonly summary: string;
  readonly group: string;
  readonly load: () => Promise<CommandModule>;
}

/** Command that runs if the arguments name none. */
export const DEFAULT_COMMAND = "start";

/** All commands. The module of a command is loaded only to run or complete that command, or to show its help. */
export const COMMANDS: readonly CommandEntry[] = [
  ...groupOf("The gateway:", {
    start: ["Run the gateway (default command)", () => import("./gateway/start.ts")],
    restart: [
      "Replace the processes of a running gateway one at a time (INLET_PROCESSES)",
      () => import("./gateway/restart.ts"),
    ],
    plan: [
      "Show what `apply` would change (exits with 2 if anything would)",
      () => import("./gateway/plan.ts"),
    ],
    apply: ["Apply a declarative config file", () => import("./gateway/apply.ts")],
    export: ["Print a declarative config file of the existing apps", () => import("./gateway/export.ts")],
    "rotate-master-key": [
      "Encrypt all stored secrets with another master key",
      () => import("./gateway/rotate-master-key.ts"),
    ],
    backup: ["Write the embedded PostgreSQL and Redis into one file", () => import("./gateway/backup.ts")],
    restore: ["Create a data directory from a backup", () => import("./gateway/restore.ts")],
  }),
  ...groupOf("Connection and status:", {
    login: ["Store a gateway's address and an API key", () => import("./session/login.ts")],
    logout: ["Remove stored credentials", () => import("./session/logout.ts")],
    status: ["Show the state of the gateway and its apps", () => import("./session/status.ts")],
    doctor: [
      "Check this installation and the gateway, and suggest fixes",
      () => import("./session/doctor.ts"),
    ],
    get: ["Show the entity, delivery or event with an id", () => import("./session/get.ts")],
    problems: [
      "List, acknowledge and mute problems of channels, handlers and subscriptions",
      () => import("./resources/problems.ts"),
    ],
    audit: ["Show who changed what", () => import("./session/audit.ts")],
    api: ["Call any operation of the API", () => import("./session/api.ts")],
    completion: ["Print a shell completion script", () => import("./session/completion.ts")],
  }),
  ...groupOf("Resources:", {
    blueprints: ["List, create, update, delete blueprints", () => import("./resources/blueprints.ts")],
    apps: ["List, create, install, upgrade, delete apps", () => import("./resources/apps.ts")],
    channels: [
      "List, create, update, register, pause, resume, rotate, delete channels",
      () => import("./resources/channels.ts"),
    ],
    intake: [
      "Receive the events of all customers at one address; set the route keys of installs",
      () => import("./resources/intake.ts"),
    ],
    registrations: [
      "List webhooks that Inlet has registered at providers; adopt them after a restore",
      () => import("./resources/registrations.ts"),
    ],
    sources: ["Show the state of sources; set their cursors", () => import("./resources/sources.ts")],
    subscriptions: [
      "List, create, pause, resume, rewind, delete subscriptions",
      () => import("./resources/subscriptions.ts"),
    ],
    agents: [
      "Open event types to agents; list and end subscriptions of agents",
      () => import("./resources/agents.ts"),
    ],
    presets: ["List provider presets, and show how to set one up", () => import("./resources/presets.ts")],
    connections: [
      "List, create, test, delete connections; sign in at a provider",
      () => import("./resources/connections.ts"),
    ],
    keys: ["List, create, revoke API keys", () => import("./resources/keys.ts")],
  }),
  ...groupOf("Events:", {
    receive: [
      "Receive events of a provider, any webhook, a stream or an API, from nothing to the first event",
      () => import("./events/receive.ts"),
    ],
    catalog: ["List the event types of an app", () => import("./events/catalog.ts")],
    infer: ["Infer the schemas of a channel's events", () => import("./events/infer.ts")],
    stats: ["Show the counts of each channel, with a trend", () => import("./events/stats.ts")],
    top: ["Show the live rates of the busiest channels", () => import("./events/top.ts")],
    types: ["Print TypeScript types of an app's events", () => import("./events/types.ts")],
    events: ["List an app's events, or get one", () => import("./events/events.ts")],
    tail: ["Show events as they arrive", () => import("./events/tail.ts")],
    listen: [
      "Forward events to a local server, in the same form as to a handler",
      () => import("./events/listen.ts"),
    ],
    send: ["Post a delivery to a channel as its provider would", () => import("./events/send.ts")],
    explain: ["Show step by step how a delivery would be processed", () => import("./events/explain.ts")],
    deliveries: [
      "List an app's newest deliveries, or get one with its body",
      () => import("./events/deliveries.ts"),
    ],
    quarantine: ["List, get, preview, delete quarantined items", () => import("./events/quarantine.ts")],
    redrive: ["Process quarantined items again", () => import("./events/redrive.ts")],
    recover: ["Publish missed events that a source has only listed", () => import("./events/recover.ts")],
    "dry-run": ["Poll a source once without publishing events", () => import("./events/dry-run.ts")],
    replay: ["Send past events to a subscription's handler again", () => import("./events/replay.ts")],
  }),
];

function groupOf(
  group: string,
  commands: Readonly<Record<string, readonly [summary: string, load: CommandEntry["load"]]>>,
): readonly CommandEntry[] {
  return Object.entries(commands).map(([name, [summary, load]]) => ({ name, summary, group, load }));
}
