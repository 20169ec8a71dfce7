import { type CheckChannelDeps, checkChannel } from "../channels/check-channel.ts";

/** Channel of the app `welcome`, which accepts every delivery. */
const WELCOME = {
  uid: "inbox",
  title: "Inbox",
  kind: "webhook",
  config: {},
  events: [{ type: "received" }],
} as const;

/** Checks the settings of the channel and returns it with its name. */
export async function createWelcomeChannel(deps: CheckChannelDeps) {
  const checked = await checkChannel(deps, WELCOME, "");
  if (!checked.ok) throw new Error("the settings of the channel of the app `welcome` are invalid");
  return { ...checked.value, uid: WELCOME.uid, title: WELCOME.title };
}
