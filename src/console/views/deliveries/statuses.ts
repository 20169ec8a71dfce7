import type { Schemas } from "../../api/client.ts";
import type { Tone } from "../../kit/layout/page.tsx";

export type Delivery = Schemas["Delivery"];
export type Status = Delivery["status"];

export const STATUSES: Readonly<Record<Status, { readonly tone: Tone; readonly words: string }>> = {
  published: { tone: "ok", words: "Every item was published as an event." },
  recovered: { tone: "warn", words: "The channel missed this delivery. A poll found its events." },
  duplicate: { tone: "plain", words: "Its events were already published, so no event was written again." },
  ignored: { tone: "plain", words: "No item was published, because of the when of the definitions." },
  quarantined: {
    tone: "warn",
    words: "At least one item could not become an event and is in quarantine.",
  },
  refused: { tone: "bad", words: "The delivery was rejected. No event was published." },
  failed: { tone: "bad", words: "The outcome is unknown. The sender was asked to retry." },
  handshake: { tone: "info", words: "The provider verified the address, and Inlet responded." },
  woke: { tone: "ok", words: "Polling channels were woken. The delivery had no events." },
  empty: { tone: "plain", words: "The delivery contained no items." },
};

export const STATUS_NAMES = Object.keys(STATUSES) as readonly Status[];
