import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Dialog } from "../feedback/dialog.tsx";

interface Shortcut {
  /** `g o`, `/`, `?`. */
  readonly keys: string;
  readonly does: string;
  readonly run: () => void;
}

/** Shortcuts of the visible views. The most recently added one wins. */
const active = signal<readonly Shortcut[]>([]);
const isHelpOpen = signal(false);

export function openShortcutHelp(): void {
  isHelpOpen.value = true;
}

/** Registers a shortcut while the component is mounted. `undefined` registers no shortcut. */
export function useShortcut(shortcut: Shortcut | undefined): void {
  const { keys, does } = shortcut ?? {};
  useEffect(() => {
    if (shortcut === undefined) return undefined;
    active.value = [...active.peek(), shortcut];
    return () => {
      active.value = active.peek().filter((one) => one !== shortcut);
    };
    // `run` is a new function on each render. Keys and label identify the shortcut.
  }, [keys, does]);
}

const SEQUENCE_MS = 1_200;

/** Handles all shortcuts. The page must contain it once. */
export function Shortcuts() {
  useEffect(() => {
    let begun = "";
    let begunAtMs = 0;
    const onKey = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      if (document.querySelector("dialog[open]")) return;
      const sequence =
        Date.now() - begunAtMs < SEQUENCE_MS && begun !== "" ? `${begun} ${event.key}` : event.key;
      begun = "";
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
        begun = event.key;
        begunAtMs = Date.now();
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
          { keys: "?", does: "Show this list" },
          { keys: "Esc", does: "Close a panel or dialog" },
        ].map(({ keys, does }) => (
          <div key={keys}>
            <dt>
              {keys.split(" ").map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName));
