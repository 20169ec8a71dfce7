import { describe, it } from "vitest";
import { opened } from "../support/opened.ts";
import { killWhileHandling, killWhileRedriving, openKillSite } from "./handler-kills.ts";

const site = opened(openKillSite);

describe("gateways that are killed again and again", () => {
  it("lose no event and acknowledge none too early while handlers hang, cut and refuse", () =>
    killWhileHandling(site, 5));

  it("leave each item of a re-drive in quarantine or on its topic, never twice", () =>
    killWhileRedriving(site, 2));
});
