import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/**
 * A headless Chromium that reaches this machine and nothing else: no name is resolved.
 *
 * @throws Error where there is none; it says how to get one
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
