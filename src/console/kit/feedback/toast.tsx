import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { Button } from "../layout/button.tsx";
import { Icon } from "../layout/icons.tsx";
import { visibleText } from "../text/visible.ts";
import { announce } from "./announce.tsx";

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly tone: "ok" | "bad";
}

const toasts = signal<readonly Toast[]>([]);
let lastId = 0;
const SHOWN_MS = 6_000;
const MAX_CHARACTERS = 400;

/** Shows a short confirmation for a few seconds. Messages that the user must read belong in the view. */
export function toast(message: string, tone: Toast["tone"] = "ok"): void {
  const text = visibleText(message.slice(0, MAX_CHARACTERS));
  const id = ++lastId;
  toasts.value = [...toasts.value, { id, text, tone }].slice(-4);
  announce(text);
  setTimeout(() => dismiss(id), SHOWN_MS);
}

const dismiss = (id: number): void => {
  toasts.value = toasts.value.filter((one) => one.id !== id);
};

/** Shows the messages of `toast`. The page must contain this component once. */
export function Toasts(): ComponentChildren {
  return (
    <div class="toasts">
      {toasts.value.map(({ id, text, tone }) => (
        <div key={id} class={`toast ${tone}`}>
          <span>{text}</span>
          <Button look="quiet icon-only" aria-label="Dismiss" onClick={() => dismiss(id)}>
            <Icon name="close" />
          </Button>
        </div>
      ))}
    </div>
  );
}
