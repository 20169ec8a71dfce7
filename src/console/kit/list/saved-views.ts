import { signal } from "@preact/signals";

/** A filtered list that the user has saved under a name. */
export interface SavedView {
  readonly name: string;
  /** Path and query of the view, such as `/console/deliveries?status=refused`. */
  readonly href: string;
}

const MAX_VIEWS = 50;
const MAX_NAME_LENGTH = 60;

const keyOf = (organizationId: string): string => `inlet.views.${organizationId}`;

/** Increases with each change, so that components that show saved views are drawn again. */
const changes = signal(0);

/** Returns the views that were saved in this browser for the organization, oldest first. */
export function readSavedViews(organizationId: string): readonly SavedView[] {
  // Read the signal, so that the caller is drawn again after a change.
  void changes.value;
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(keyOf(organizationId)) ?? "[]");
    return Array.isArray(stored) ? stored.filter(isSavedView) : [];
  } catch {
    return [];
  }
}

/** Saves a view. Replaces the view with the same name or address. The oldest view is dropped if there are too many. */
export function saveView(organizationId: string, { name, href }: SavedView): void {
  const text = name.trim().slice(0, MAX_NAME_LENGTH);
  if (text === "") return;
  const others = readSavedViews(organizationId).filter((one) => one.name !== text && one.href !== href);
  write(organizationId, [...others, { name: text, href }].slice(-MAX_VIEWS));
}

export function removeView(organizationId: string, href: string): void {
  write(
    organizationId,
    readSavedViews(organizationId).filter((one) => one.href !== href),
  );
}

function write(organizationId: string, views: readonly SavedView[]): void {
  localStorage.setItem(keyOf(organizationId), JSON.stringify(views));
  changes.value++;
}

/** Accepts only addresses inside the console, because other scripts of this origin could have written the storage. */
const isSavedView = (one: unknown): one is SavedView =>
  typeof one === "object" &&
  one !== null &&
  "name" in one &&
  typeof one.name === "string" &&
  "href" in one &&
  typeof one.href === "string" &&
  one.href.startsWith("/console/");
