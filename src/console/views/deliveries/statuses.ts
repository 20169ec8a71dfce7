import type { Schemas } from "../../api/client.ts";
import type { Tone } from "../../kit/layout/page.tsx";

export type Delivery = Schemas["Delivery"];
export type Status = Delivery["status"];

/** What a delivery came to: its colour, and what it means. */
export const STATUSES: Readonly<Record<Status, { readonly tone: Tone; readonly words: string }>> = {
  published: { tone: "ok", words: "Every item of it became an event." },
  duplicate: { tone: "plain", words: "Its events were published before; nothing was written twice." },
  quarantined: {
    tone: "warn",
    words: "Something of it could not become an event, and is kept in quarantine.",
  },
  refused: { tone: "bad", words: "Its sender was refused; nothing of it was taken." },
  failed: { tone: "bad", words: "Its sender was asked to repeat it; what became of it is not certain." },
  handshake: { tone: "info", words: "The provider asked whether the address is ours, and was answered." },
  empty: { tone: "plain", words: "It had no item." },
};

export const STATUS_NAMES = Object.keys(STATUSES) as readonly Status[];
