import { describeProvider } from "./provider-emulator.suite.ts";
import { BUSINESS_APPS } from "./provider-samples/business-apps.ts";
import { DEVELOPER_TOOLS } from "./provider-samples/developer-tools.ts";
import { GOOGLE_AND_MICROSOFT } from "./provider-samples/google-and-microsoft.ts";
import { MESSAGING } from "./provider-samples/messaging.ts";

for (const samples of [...DEVELOPER_TOOLS, ...GOOGLE_AND_MICROSOFT, ...BUSINESS_APPS, ...MESSAGING]) {
  describeProvider(samples);
}
