import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Dialog } from "../feedback/dialog.tsx";

interface Shortcut {
  /** Keys of the shortcut: one key such as `?`, or a sequence such as `g o`. */
  readonly keys: string;
  readonly description: string;
  readonly run: () => void;
}

/** Shortcuts that are currently registered. If two have the same keys, the one registered last is used. */
const active = signal<readonly Shortcut[]>([]);
const isHelpOpen = signal(false);

export function openShortcutHelp(): void {
  isHelpOpen.value = true;
}

/** Hook that registers a keyboard shortcut while the component is mounted. Does nothing if the shortcut is `undefined`. */
export function useShortcut(shortcut: Shortcut | undefined): void {
  const { keys, description } = shortcut ?? {};
  useEffect(() => {
    if (shortcut === undefined) return undefined;
    active.value = [...active.peek(), shortcut];
    return () => {
      active.value = active.peek().filter((one) => one !== shortcut);
    };
    // `run` is not a dependency, because each render creates a new function.
  }, [keys, description]);
}

const SEQUENCE_MS = 1_200;

/** Handles all keyboard shortcuts. The page must contain this component once. */
export function Shortcuts() {
  useEffect(() => {
    let firstKey = "";
    let firstKeyAtMs = 0;
    const onKey = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      if (document.querySelector("dialog[open]")) return;
      const sequence =
        Date.now() - firstKeyAtMs < SEQUENCE_MS && firstKey !== "" ? `${firstKey} ${event.key}` : event.key;
      firstKey = "";
      if (sequence === "?") {
        event.preventDefault();
        openShortcutHelp();
        return;
      }
      const found = active.peek().findLast(({ keys }) => keys === sequence);
      if (found) {
        event.preventDefault();
        found.run();
      } else if (
        event.key.length === 1 &&
        active.peek().some(({ keys }) => keys.startsWith(`${event.key} `))
      ) {
        firstKey = event.key;
        firstKeyAtMs = Date.now();
      }
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  if (!isHelpOpen.value) return null;
  return (
    <Dialog title="Keyboard shortcuts" onClose={() => (isHelpOpen.value = false)}>
      <dl class="shortcuts">
        {[
          ...active.value,
          { keys: "Ctrl+K", description: "Find an entity by its id, or an app or page by its name" },
          { keys: "?", description: "Show this list" },
          { keys: "Esc", description: "Close a panel or dialog" },
        ].map(({ keys, description }) => (
          <div key={keys}>
            <dt>
              {keys.split(" ").map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{description}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName));
