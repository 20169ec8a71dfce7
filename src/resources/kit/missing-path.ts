import { suggestNearest } from "../../lib/nearest.ts";
import type { MountedRoute } from "./mount.ts";

/**
 * Resource groups of the platform's interface document that Inlet does not have, by the first segment of their paths, with
 * the nearest thing in Inlet. `src/docs/api.md` has the complete list of groups.
 */
export const OTHER_GROUPS: Readonly<Record<string, string>> = {
  assets: "Inlet only stores the ids of assets, for example in `Organization.logoAssetId`.",
  configs:
    "The gateway is configured by its settings, and an organization by `/organizations/{organizationId}/limits`.",
  datasets: "Structured data with fields is at `/collections`.",
  datasources: "Channels that fetch events from other servers are at `/apps/{appId}/channels`.",
  flows: "To start a flow with events, subscribe its endpoint at `/apps/{appId}/events/subscribe`.",
  integrations:
    "Credentials for other services are at `/connections`, and settings of known senders at `/presets`.",
  kpis: "Key figures of the event flow are at `/overview`.",
  objects: "Records with the fields of a collection are at `/collections/{collectionId}/records`.",
  pipelines: "To process events, subscribe a handler at `/apps/{appId}/events/subscribe`.",
  preferences: "Inlet stores no preferences of users or workspaces.",
  presence: "Conversations that guests can join are at `/conversations/CreateLiveConversation`.",
  projects: "Inlet only stores the id of an app's project, in `App.projectId`.",
  screens: "Inlet stores no layouts of user interfaces.",
};

/** Maximum number of paths that an explanation names. */
const MAX_SHOWN = 2;

/**
 * Explains a 404 for a path whose first segment begins no path of the API. It can be a group of the platform that Inlet does not
 * have, a resource with another path, or a misspelled name. Returns `undefined` for other paths.
 */
export function explainMissingPath(path: string, routes: readonly MountedRoute[]): string | undefined {
  const [, first = ""] = path.split("/");
  const paths = routes.map((route) => route.path.replace(/:(\w+)/g, "{$1}"));
  const firstSegments = new Set(paths.map((one) => one.split("/")[1] ?? ""));
  if (first === "" || firstSegments.has(first)) return undefined;
  const name = first.toLowerCase().replaceAll("-", "");
  const other = Object.hasOwn(OTHER_GROUPS, name) ? OTHER_GROUPS[name] : undefined;
  if (other !== undefined)
    return `Inlet does not have the resource group \`${name}\`. It belongs to the other services of the platform. ${other}`;
  const elsewhere = [...new Set(paths.flatMap((one) => upTo(one, first) ?? []))].slice(0, MAX_SHOWN);
  const isSingular = firstSegments.has(`${first}s`);
  if (elsewhere.length > 0 && !isSingular)
    return `There is no such path. \`${first}\` is at ${elsewhere.map((one) => `\`${one}\``).join(" and ")}.`;
  const hint = suggestNearest(first, [...firstSegments]);
  return `There is no such path${hint === "" ? "." : hint} \`GET /openapi.json\` describes all paths.`;
}

/** Returns the part of a path that ends with this segment. */
function upTo(path: string, segment: string): string | undefined {
  const segments = path.split("/");
  const at = segments.indexOf(segment);
  return at < 0 ? undefined : segments.slice(0, at + 1).join("/");
}
