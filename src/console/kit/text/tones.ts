import type { Schemas } from "../../api/client.ts";
import type { Tone } from "../layout/page.tsx";

export function toneOfChannel(state: Schemas["Channel"]["state"]): Tone {
  switch (state) {
    case "active":
      return "ok";
    case "paused":
    case "idle":
      return "plain";
    case "needsSetup":
    case "needsConnection":
    case "needsReauth":
      return "warn";
    case "error":
      return "bad";
    default:
      return state satisfies never;
  }
}

export function toneOfConnection(state: Schemas["Connection"]["state"]): Tone {
  switch (state) {
    case "ok":
      return "ok";
    case "needsReauth":
      return "warn";
    case "error":
      return "bad";
    default:
      return state satisfies never;
  }
}

export function toneOfSubscription(state: Schemas["Subscription"]["state"]): Tone {
  switch (state) {
    case "active":
      return "ok";
    case "paused":
      return "plain";
    case "failing":
      return "bad";
    default:
      return state satisfies never;
  }
}

export function toneOfSource(health: Schemas["Source"]["health"]): Tone {
  switch (health) {
    case "healthy":
      return "ok";
    case "retrying":
      return "warn";
    case "failing":
      return "bad";
    case "stopped":
      return "plain";
    default:
      return health satisfies never;
  }
}
