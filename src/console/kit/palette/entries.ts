import type { Schemas } from "../../api/client.ts";
import { VIEWS } from "../../routes.ts";
import { viewHref } from "../layout/links.ts";

/** A place that the palette offers. */
export interface PaletteEntry {
  readonly href: string;
  /** Kind of the place, such as `Page` or `Delivery`. */
  readonly kind: string;
  readonly title: string;
  readonly details?: string;
}

type Match = Schemas["Match"];

/** Returns the pages whose title contains the text. Pages of an app are those of the current app. */
export function findPages(text: string, appId: string | undefined): readonly PaletteEntry[] {
  const wanted = text.toLowerCase();
  return VIEWS.flatMap(({ path, nav }) => {
    if (nav === undefined || !nav.title.toLowerCase().includes(wanted)) return [];
    if (path.includes(":appId") && appId === undefined) return [];
    const href = viewHref(path, appId === undefined ? {} : { appId });
    return href === undefined ? [] : [{ href, kind: "Page", title: nav.title }];
  });
}

/** Returns the place of an app that a search by name has found, or `undefined` if the caller may not open its page. */
export function entryOfApp({ id, uid, title }: Schemas["AppSummary"]): PaletteEntry | undefined {
  const href = viewHref("/apps/:appId/channels", { appId: id });
  return href === undefined ? undefined : { href, kind: "App", title, details: uid };
}

const KIND_NAMES: ReadonlyMap<Match["kind"], string> = new Map([
  ["app", "App"],
  ["blueprint", "Blueprint"],
  ["channel", "Channel"],
  ["subscription", "Subscription"],
  ["deadLetter", "Dead letter"],
  ["problem", "Problem"],
  ["connection", "Connection"],
  ["apiKey", "API key"],
  ["delivery", "Delivery"],
  ["quarantinedItem", "Quarantined item"],
  ["event", "Event"],
]);

/** Returns the place of an entity that `lookUp` has found, or `undefined` if the caller may not open its page. */
export function entryOf(match: Match): PaletteEntry | undefined {
  const { kind, id, title } = match;
  const href = hrefOf(match);
  return href === undefined ? undefined : { href, kind: KIND_NAMES.get(kind) ?? kind, title, details: id };
}

function hrefOf({ kind, id, appId, path }: Match): string | undefined {
  const inApp = { appId: appId ?? "" };
  switch (kind) {
    case "app":
      return viewHref("/apps", {}, { id });
    case "blueprint":
      return viewHref("/blueprints", {}, { id });
    case "channel":
      return viewHref("/apps/:appId/channels", inApp, { channel: id });
    case "subscription":
      return viewHref("/apps/:appId/subscriptions", inApp, { subscription: id });
    case "deadLetter":
      return viewHref(
        "/dead-letters",
        {},
        { app: inApp.appId, subscription: segmentsOf(path)[3], letter: id },
      );
    case "problem":
      return viewHref("/problems", {}, { id });
    case "connection":
      return viewHref("/connections", {}, { id });
    case "apiKey":
      return viewHref("/api-keys", {}, { id });
    case "delivery":
      return viewHref("/apps/:appId/deliveries/:deliveryId", { ...inApp, deliveryId: id });
    case "quarantinedItem":
      return viewHref("/quarantine", {}, { app: inApp.appId, item: id });
    case "event": {
      const event = `${segmentsOf(path)[3]}/${id}`;
      return viewHref("/events", {}, { app: appId ?? undefined, event });
    }
  }
}

/** Returns the decoded segments of an API path. */
const segmentsOf = (path: string): readonly string[] => path.slice(1).split("/").map(decodeURIComponent);
