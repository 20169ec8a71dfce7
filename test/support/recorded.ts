import type { TestGateway } from "./gateway.ts";
import { until } from "./until.ts";

/** Waits until a delivery to the app is recorded. The recorder writes in the background, once a second. */
export const untilRecorded = ({ api }: Pick<TestGateway, "api">, appId: string): Promise<void> =>
  until(async () => (await api<readonly object[]>("GET", `/apps/${appId}/deliveries`)).length > 0);
