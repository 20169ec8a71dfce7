import type { Command } from "commander";
import type { CommandContext } from "../command-context.ts";

/** The file of a command: it says its arguments, and does its work only in its action, which loads what it needs. */
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
const SESSION = "Which gateway:";
const RESOURCES = "What there is:";
const EVENTS = "Events:";

/** All commands. A file is loaded when its command is called, asked for help, or completed. */
export const COMMANDS: readonly CommandEntry[] = [
  {
    name: "start",
    summary: "Run the gateway (what happens without a command)",
    group: GATEWAY,
    load: () => import("./gateway/start.ts"),
  },
  {
    name: "plan",
    summary: "Say what a declared set-up would change; exit code 2 where it would",
    group: GATEWAY,
    load: () => import("./gateway/plan.ts"),
  },
  {
    name: "apply",
    summary: "Bring the gateway to a declared set-up",
    group: GATEWAY,
    load: () => import("./gateway/apply.ts"),
  },
  {
    name: "rotate-master-key",
    summary: "Seal all stored secrets under another master key",
    group: GATEWAY,
    load: () => import("./gateway/rotate-master-key.ts"),
  },
  {
    name: "seal-addresses",
    summary: "Keep addresses of channels sealed only, once older gateways are gone",
    group: GATEWAY,
    load: () => import("./gateway/seal-addresses.ts"),
  },
  {
    name: "backup",
    summary: "Write what the gateway keeps in its own PostgreSQL and Redis into one file",
    group: GATEWAY,
    load: () => import("./gateway/backup.ts"),
  },
  {
    name: "restore",
    summary: "Make a data directory of a backup",
    group: GATEWAY,
    load: () => import("./gateway/restore.ts"),
  },
  {
    name: "login",
    summary: "Keep a gateway's address and an API key",
    group: SESSION,
    load: () => import("./session/login.ts"),
  },
  {
    name: "logout",
    summary: "Forget them",
    group: SESSION,
    load: () => import("./session/logout.ts"),
  },
  {
    name: "status",
    summary: "Say how the gateway and its apps are",
    group: SESSION,
    load: () => import("./session/status.ts"),
  },
  {
    name: "doctor",
    summary: "Say what is wrong with this installation and the gateway, and what to do",
    group: SESSION,
    load: () => import("./session/doctor.ts"),
  },
  {
    name: "problems",
    summary: "List what is wrong with channels, handlers, subscriptions; acknowledge it",
    group: SESSION,
    load: () => import("./resources/problems.ts"),
  },
  {
    name: "completion",
    summary: "Print a shell's completion of commands and options",
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
    summary: "Say how channels that fetch stand; set their cursors",
    group: RESOURCES,
    load: () => import("./resources/sources.ts"),
  },
  {
    name: "subscriptions",
    summary: "List, make, pause, resume, rewind, delete subscriptions",
    group: RESOURCES,
    load: () => import("./resources/subscriptions.ts"),
  },
  {
    name: "presets",
    summary: "List the providers that are known, and how to set one up",
    group: RESOURCES,
    load: () => import("./resources/presets.ts"),
  },
  {
    name: "keys",
    summary: "List, make, revoke API keys",
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
    summary: "Show events as they come",
    group: EVENTS,
    load: () => import("./events/tail.ts"),
  },
  {
    name: "listen",
    summary: "Send events to a server on this machine, as a handler gets them",
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
    summary: "Say step by step what a delivery would become",
    group: EVENTS,
    load: () => import("./events/explain.ts"),
  },
  {
    name: "quarantine",
    summary: "List, get, delete what could not become an event",
    group: EVENTS,
    load: () => import("./events/quarantine.ts"),
  },
  {
    name: "redrive",
    summary: "Run what is in quarantine again",
    group: EVENTS,
    load: () => import("./events/redrive.ts"),
  },
  {
    name: "dry-run",
    summary: "Poll a source once, and publish nothing",
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
