import { signal } from "@preact/signals";
import { useEffect, useId, useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { type ApiError, toApiError } from "../../api/api-error.ts";
import { api, type Schemas } from "../../api/client.ts";
import { useLoad } from "../../api/use-load.ts";
import { hasPermission } from "../../session/session.ts";
import { Dialog } from "../feedback/dialog.tsx";
import { useAppId } from "../layout/apps.tsx";
import { Button } from "../layout/button.tsx";
import { Icon } from "../layout/icons.tsx";
import { useRested } from "../list/use-rested.ts";
import { UntrustedCode, UntrustedText } from "../text/untrusted-text.tsx";
import { entryOf, entryOfApp, findPages, type PaletteEntry } from "./entries.ts";
import "./palette.css";

const isOpen = signal(false);
/** Length of a text from which the API looks for an id. Shorter texts are parts of names. */
const MIN_LOOKUP_LENGTH = 3;
/** Time in ms without input after which the API is asked. */
const LOOKUP_DELAY_MS = 150;
const MAX_ID_LENGTH = 1_024;
const MAX_NAME_LENGTH = 255;
const MAX_APPS = 8;

const isMac = navigator.platform.startsWith("Mac");

/** Button of the navigation that opens the palette. */
export const PaletteButton = () => (
  <Button look="palette-button" aria-keyshortcuts="Control+K Meta+K" onClick={() => (isOpen.value = true)}>
    <Icon name="search" />
    <span class="grow">Find…</span>
    <kbd>{isMac ? "⌘K" : "Ctrl K"}</kbd>
  </Button>
);

/** Dialog that opens with Ctrl+K or ⌘K. It finds pages and apps by name, and all other entities by any id. */
export function Palette() {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey) return;
      if (document.querySelector("dialog[open]")) return;
      event.preventDefault();
      isOpen.value = true;
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  return isOpen.value ? <PaletteDialog onClose={() => (isOpen.value = false)} /> : null;
}

function PaletteDialog({ onClose }: { readonly onClose: () => void }) {
  const { route } = useLocation();
  const appId = useAppId();
  const listId = useId();
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState(0);
  /** Whether Enter was pressed before the search had a result. The first result then opens. */
  const [opensFirst, setOpensFirst] = useState(false);
  const { found, apps, isSearching, error } = useLookup(text);
  // The apps are last, because they are found later than the pages and would move the chosen one.
  const entries = [...found, ...findPages(text, appId), ...apps];
  const at = Math.min(chosen, entries.length - 1);
  const open = (entry: PaletteEntry | undefined): void => {
    if (entry === undefined) return;
    onClose();
    route(entry.href);
  };
  useEffect(() => {
    if (opensFirst && !isSearching) open(entries[0]);
  }, [opensFirst, isSearching]);
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0) setChosen((at + step + entries.length) % Math.max(1, entries.length));
    else if (event.key === "Enter" && entries.length > 0) open(entries[at]);
    else if (event.key === "Enter") setOpensFirst(true);
    else return;
    event.preventDefault();
  };
  return (
    <Dialog title="Find or go to" onClose={onClose}>
      <div class="palette">
        <input
          type="text"
          autofocus
          // biome-ignore lint/a11y/noRedundantRoles: without a `list`, the implied role is `textbox`
          role="combobox"
          list={undefined}
          aria-label="Id, app or page"
          aria-expanded="true"
          aria-controls={listId}
          aria-activedescendant={entries.length > 0 ? `${listId}-${at}` : undefined}
          autocomplete="off"
          spellcheck={false}
          placeholder="Id of a request, delivery or event, or a name"
          value={text}
          maxLength={MAX_ID_LENGTH}
          onInput={(event) => {
            setText(event.currentTarget.value.trim());
            setChosen(0);
            setOpensFirst(false);
          }}
          onKeyDown={onKeyDown}
        />
        <div role="listbox" id={listId} aria-label="Results" class="palette-list">
          {entries.map((entry, index) => (
            <PaletteOption
              key={entry.href}
              id={`${listId}-${index}`}
              entry={entry}
              isChosen={index === at}
              onFollow={onClose}
            />
          ))}
        </div>
        <p class="faint" role="status">
          {error ?? (isSearching ? "Searching…" : entries.length === 0 ? "No results." : "")}
        </p>
      </div>
    </Dialog>
  );
}

interface OptionProps {
  readonly id: string;
  readonly entry: PaletteEntry;
  readonly isChosen: boolean;
  readonly onFollow: () => void;
}

/** An option of the list. It is a link, so that it can also be opened in a new tab. The input keeps the focus. */
const PaletteOption = ({ id, entry, isChosen, onFollow }: OptionProps) => (
  <a
    role="option"
    id={id}
    class="palette-option"
    href={entry.href}
    aria-selected={isChosen}
    tabIndex={-1}
    ref={(option) => {
      if (isChosen) option?.scrollIntoView({ block: "nearest" });
    }}
    onClick={onFollow}
  >
    <span class="palette-kind">{entry.kind}</span>
    <UntrustedText max={80}>{entry.title}</UntrustedText>
    {entry.details !== undefined && (
      <UntrustedCode class="faint" max={80}>
        {entry.details}
      </UntrustedCode>
    )}
  </a>
);

/**
 * Hook that asks the API for entities with this id and apps with this name, once the input rests. If one request fails, it returns the
 * results of the other one and the error.
 */
function useLookup(text: string) {
  const asked = useRested(text, LOOKUP_DELAY_MS);
  const { data, error: loadError } = useLoad(
    async (signal) => {
      const failures: ApiError[] = [];
      const orNone = (error: unknown): readonly [] => {
        failures.push(toApiError(error));
        return [];
      };
      const [matches, apps] = await Promise.all([
        findById(asked, signal).catch(orNone),
        findApps(asked, signal).catch(orNone),
      ]);
      const foundIds = new Set(matches.map(({ id }) => id));
      return {
        found: matches.flatMap((match) => entryOf(match) ?? []),
        apps: apps.flatMap((app) => (foundIds.has(app.id) ? [] : (entryOfApp(app) ?? []))),
        error: failures[0],
      };
    },
    [asked],
  );
  const isCurrent = asked === text && data !== undefined;
  const { found, apps, error = loadError } = isCurrent ? data : NO_RESULTS;
  return {
    found,
    apps,
    isSearching: text !== "" && !isCurrent && error === undefined,
    error: error?.message,
  };
}

const NO_RESULTS = { found: [], apps: [], error: undefined } as const;

const findById = async (id: string, signal: AbortSignal): Promise<readonly Schemas["Match"][]> =>
  id.length < MIN_LOOKUP_LENGTH ? [] : (await api.get("/lookup", { query: { id }, signal })).matches;

async function findApps(name: string, signal: AbortSignal): Promise<readonly Schemas["AppSummary"][]> {
  if (name === "" || name.length > MAX_NAME_LENGTH || !hasPermission("apps.read")) return [];
  return (await api.list("/apps/summaries", { query: { search: name, limit: MAX_APPS }, signal })).rows;
}
