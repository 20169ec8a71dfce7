/** Returns how to fix the cause of a rejection with this status. */
export function getSuggestedAction(httpStatus: number): string {
  switch (httpStatus) {
    case 400:
      return "The channel rejects invalid items instead of quarantining them. See its settings onInvalid and onNoMatch.";
    case 401:
      return "Check the channel's secret and scheme. The sender uses another secret, or does not sign.";
    case 404:
    case 405:
      return "The sender uses an address or method that the channel does not have.";
    case 413:
      return "Raise limits.maxBodyBytes of the channel, or send smaller deliveries.";
    case 415:
      return "The channel does not support the sender's Content-Type.";
    case 429:
      return "The sender exceeded a rate limit of the channel or organization, and was asked to wait.";
    default:
      return "The sender was asked to retry. The overview shows which part of the gateway was unavailable.";
  }
}
