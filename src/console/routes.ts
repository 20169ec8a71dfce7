import type { FunctionComponent } from "preact";
import { lazy } from "preact-iso";
import type { IconName } from "./kit/layout/icons.tsx";

/** A page of the console, with its navigation entry. */
export interface View {
  /** URL path after `/console`, with parameters such as `:name`. A path that starts with `/apps/:appId/` shows the selected app. */
  readonly path: string;
  /** Component of the view, loaded on first use. Its properties are the parameters of the path. */
  readonly component: FunctionComponent & { readonly preload: () => Promise<unknown> };
  /** Required permission. `undefined` if the view needs none. */
  readonly needs?: string;
  /** Navigation entry. `undefined` for a view that is only reachable through links in other views. */
  readonly nav?: {
    readonly group: NavGroup;
    readonly title: string;
    readonly icon: IconName;
    /** Second key of the shortcut, after `g`. */
    readonly key: string;
  };
}

/** Groups of the navigation. The views of `App` show the selected app, and those of the other groups the whole organization. */
export const NAV_GROUPS = ["All apps", "App", "Organization"] as const;
export type NavGroup = (typeof NAV_GROUPS)[number];

/** Loads the view's code on first use. The cast is needed, because the properties of each view differ. */
const view = (load: () => Promise<{ readonly default: unknown }>): View["component"] =>
  lazy(load as () => Promise<{ default: FunctionComponent }>);

/** All views of the console. To add a view, create a folder in `views/` and add an entry here. */
export const VIEWS: readonly View[] = [
  {
    path: "/",
    component: view(() => import("./views/overview/overview.tsx")),
    nav: { group: "All apps", title: "Overview", icon: "overview", key: "o" },
  },
  {
    path: "/problems",
    component: view(() => import("./views/problems/problems.tsx")),
    needs: "problems.read",
    nav: { group: "All apps", title: "Problems", icon: "problems", key: "p" },
  },
  {
    path: "/events",
    component: view(() => import("./views/events/events.tsx")),
    needs: "apps.read",
    nav: { group: "All apps", title: "Events", icon: "events", key: "e" },
  },
  {
    path: "/deliveries",
    component: view(() => import("./views/deliveries/deliveries.tsx")),
    needs: "deliveries.read",
    nav: { group: "All apps", title: "Deliveries", icon: "deliveries", key: "d" },
  },
  {
    path: "/apps/:appId/deliveries/:deliveryId",
    component: view(() => import("./views/deliveries/delivery.tsx")),
    needs: "deliveries.read",
  },
  {
    path: "/quarantine",
    component: view(() => import("./views/quarantine/quarantine.tsx")),
    needs: "apps.read",
    nav: { group: "All apps", title: "Quarantine", icon: "quarantine", key: "q" },
  },
  {
    path: "/dead-letters",
    component: view(() => import("./views/dead-letters/dead-letters.tsx")),
    needs: "apps.read",
    nav: { group: "All apps", title: "Dead letters", icon: "deadLetters", key: "x" },
  },
  {
    path: "/sources",
    component: view(() => import("./views/sources/sources.tsx")),
    needs: "apps.read",
    nav: { group: "All apps", title: "Sources", icon: "sources", key: "s" },
  },
  {
    path: "/start",
    component: view(() => import("./views/start/start.tsx")),
    needs: "apps.write",
    nav: { group: "App", title: "Receive events", icon: "start", key: "r" },
  },
  {
    path: "/apps/:appId/channels",
    component: view(() => import("./views/channels/channels.tsx")),
    needs: "apps.read",
    nav: { group: "App", title: "Channels", icon: "channels", key: "c" },
  },
  {
    path: "/apps/:appId/catalog",
    component: view(() => import("./views/catalog/catalog.tsx")),
    needs: "apps.read",
    nav: { group: "App", title: "Catalog", icon: "definitions", key: "y" },
  },
  {
    path: "/apps/:appId/tail",
    component: view(() => import("./views/events/tail.tsx")),
    needs: "apps.read",
    nav: { group: "App", title: "Live tail", icon: "tail", key: "t" },
  },
  {
    path: "/apps/:appId/subscriptions",
    component: view(() => import("./views/subscriptions/subscriptions.tsx")),
    needs: "apps.read",
    nav: { group: "App", title: "Subscriptions", icon: "subscriptions", key: "u" },
  },
  {
    path: "/apps/:appId/agents",
    component: view(() => import("./views/agents/agents.tsx")),
    needs: "apps.read",
    nav: { group: "App", title: "Agents", icon: "agents", key: "w" },
  },
  {
    path: "/apps/:appId/channels/:channelUid/definitions",
    component: view(() => import("./views/definitions/definitions.tsx")),
    needs: "apps.read",
  },
  {
    path: "/apps",
    component: view(() => import("./views/apps/apps.tsx")),
    needs: "apps.read",
    nav: { group: "Organization", title: "Apps", icon: "apps", key: "a" },
  },
  {
    path: "/blueprints",
    component: view(() => import("./views/blueprints/blueprints.tsx")),
    needs: "blueprints.read",
    nav: { group: "Organization", title: "Blueprints", icon: "blueprints", key: "b" },
  },
  {
    path: "/blueprints/:blueprintId/intake",
    component: view(() => import("./views/intake/intake.tsx")),
    needs: "blueprints.read",
  },
  {
    path: "/connections",
    component: view(() => import("./views/connections/connections.tsx")),
    needs: "connections.read",
    nav: { group: "Organization", title: "Connections", icon: "connections", key: "n" },
  },
  {
    path: "/api-keys",
    component: view(() => import("./views/api-keys/api-keys.tsx")),
    needs: "iam.read",
    nav: { group: "Organization", title: "API keys", icon: "keys", key: "k" },
  },
  {
    path: "/audit",
    component: view(() => import("./views/audit/audit.tsx")),
    needs: "audit.read",
    nav: { group: "Organization", title: "Audit", icon: "audit", key: "l" },
  },
  {
    path: "/organization",
    component: view(() => import("./views/organization/organization.tsx")),
    needs: "organizations.read",
    nav: { group: "Organization", title: "Organization", icon: "organization", key: "z" },
  },
];

/**
 * Names of views that were views of one app, at `/apps/:appId/<name>`. They now cover all apps. Their former addresses lead to the view with
 * the app as its filter.
 */
export const FORMER_APP_VIEWS = ["events", "deliveries", "quarantine", "dead-letters", "sources"] as const;
