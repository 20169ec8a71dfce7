import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/**
 * Starts a headless Chromium that can reach only this machine: it resolves no host names.
 *
 * @throws Error when Chromium is not installed. The message says how to get it.
 */
export async function launchChromium(): Promise<Browser> {
  const given = process.env.INLET_TEST_CHROMIUM;
  const executablePath = given ?? PLACES.find((place) => existsSync(place));
  if (executablePath === undefined) {
    throw new Error(
      "These tests need Chromium: install it (apt-get install chromium), or set INLET_TEST_CHROMIUM to its path.",
    );
  }
  return chromium.launch({
    executablePath,
    args: ["--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"],
  });
}
