import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Dialog } from "../feedback/dialog.tsx";

interface Shortcut {
  /** `g o`, `/`, `?`. */
  readonly keys: string;
  readonly does: string;
  readonly run: () => void;
}

/** Those of the views in sight; the youngest wins. */
const active = signal<readonly Shortcut[]>([]);
const isHelpOpen = signal(false);

export function openShortcutHelp(): void {
  isHelpOpen.value = true;
}

/** A shortcut as long as the component stands. Undefined: none. */
export function useShortcut(shortcut: Shortcut | undefined): void {
  const { keys, does } = shortcut ?? {};
  useEffect(() => {
    if (shortcut === undefined) return undefined;
    active.value = [...active.peek(), shortcut];
    return () => {
      active.value = active.peek().filter((one) => one !== shortcut);
    };
    // What it runs may be made anew by each drawing; its keys and words say whether it is another.
  }, [keys, does]);
}

const SEQUENCE_MS = 1_200;

/** Listens for all of them; stands once in the page. */
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
    <Dialog title="Keyboard" onClose={() => (isHelpOpen.value = false)}>
      <dl class="shortcuts">
        {[
          ...active.value,
          { keys: "?", does: "This list" },
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
