import { Empty } from "../../kit/feedback/states.tsx";
import { useAppId } from "../../kit/layout/apps.tsx";
import { Page } from "../../kit/layout/page.tsx";

export default function Overview() {
  return (
    <Page title="Overview">
      <Empty title={`App ${useAppId() ?? "none"}`} />
    </Page>
  );
}
