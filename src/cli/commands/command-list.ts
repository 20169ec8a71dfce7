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

const GATEWAY = "The gateway:";
const SESSION = "Connection and status:";
const RESOURCES = "Resources:";
const EVENTS = "Events:";

/** Command that runs if the arguments name none. */
export const DEFAULT_COMMAND = "start";

/** All commands. The module of a command is loaded only to run or complete that command, or to show its help. */
export const COMMANDS: readonly CommandEntry[] = [
  {
    name: "start",
    summary: "Run the gateway (default command)",
    group: GATEWAY,
    load: () => import("./gateway/start.ts"),
  },
  {
    name: "plan",
    summary: "Show what `apply` would change (exits with 2 if anything would)",
    group: GATEWAY,
    load: () => import("./gateway/plan.ts"),
  },
  {
    name: "apply",
    summary: "Apply a declarative config file",
    group: GATEWAY,
    load: () => import("./gateway/apply.ts"),
  },
  {
    name: "rotate-master-key",
    summary: "Encrypt all stored secrets with another master key",
    group: GATEWAY,
    load: () => import("./gateway/rotate-master-key.ts"),
  },
  {
    name: "backup",
    summary: "Write the embedded PostgreSQL and Redis into one file",
    group: GATEWAY,
    load: () => import("./gateway/backup.ts"),
  },
  {
    name: "restore",
    summary: "Create a data directory from a backup",
    group: GATEWAY,
    load: () => import("./gateway/restore.ts"),
  },
  {
    name: "login",
    summary: "Store a gateway's address and an API key",
    group: SESSION,
    load: () => import("./session/login.ts"),
  },
  {
    name: "logout",
    summary: "Remove stored credentials",
    group: SESSION,
    load: () => import("./session/logout.ts"),
  },
  {
    name: "status",
    summary: "Show the state of the gateway and its apps",
    group: SESSION,
    load: () => import("./session/status.ts"),
  },
  {
    name: "doctor",
    summary: "Check this installation and the gateway, and suggest fixes",
    group: SESSION,
    load: () => import("./session/doctor.ts"),
  },
  {
    name: "problems",
    summary: "List and acknowledge problems of channels, handlers and subscriptions",
    group: SESSION,
    load: () => import("./resources/problems.ts"),
  },
  {
    name: "completion",
    summary: "Print a shell completion script",
    group: SESSION,
    load: () => import("./session/completion.ts"),
  },
  {
    name: "apps",
    summary: "List, install, upgrade, delete apps",
    group: RESOURCES,
    load: () => import("./resources/apps.ts"),
  },
  {
    name: "channels",
    summary: "List, pause, resume, rotate, delete channels",
    group: RESOURCES,
    load: () => import("./resources/channels.ts"),
  },
  {
    name: "sources",
    summary: "Show the state of sources; set their cursors",
    group: RESOURCES,
    load: () => import("./resources/sources.ts"),
  },
  {
    name: "subscriptions",
    summary: "List, create, pause, resume, rewind, delete subscriptions",
    group: RESOURCES,
    load: () => import("./resources/subscriptions.ts"),
  },
  {
    name: "presets",
    summary: "List provider presets, and show how to set one up",
    group: RESOURCES,
    load: () => import("./resources/presets.ts"),
  },
  {
    name: "keys",
    summary: "List, create, revoke API keys",
    group: RESOURCES,
    load: () => import("./resources/keys.ts"),
  },
  {
    name: "events",
    summary: "List an app's events, or get one",
    group: EVENTS,
    load: () => import("./events/events.ts"),
  },
  {
    name: "tail",
    summary: "Show events as they arrive",
    group: EVENTS,
    load: () => import("./events/tail.ts"),
  },
  {
    name: "listen",
    summary: "Forward events to a local server, in the same form as to a handler",
    group: EVENTS,
    load: () => import("./events/listen.ts"),
  },
  {
    name: "send",
    summary: "Post a delivery to a channel as its provider would",
    group: EVENTS,
    load: () => import("./events/send.ts"),
  },
  {
    name: "explain",
    summary: "Show step by step how a delivery would be processed",
    group: EVENTS,
    load: () => import("./events/explain.ts"),
  },
  {
    name: "quarantine",
    summary: "List, get, delete quarantined items",
    group: EVENTS,
    load: () => import("./events/quarantine.ts"),
  },
  {
    name: "redrive",
    summary: "Process quarantined items again",
    group: EVENTS,
    load: () => import("./events/redrive.ts"),
  },
  {
    name: "dry-run",
    summary: "Poll a source once without publishing events",
    group: EVENTS,
    load: () => import("./events/dry-run.ts"),
  },
  {
    name: "replay",
    summary: "Send past events to a subscription's handler again",
    group: EVENTS,
    load: () => import("./events/replay.ts"),
  },
];
