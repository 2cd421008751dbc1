//! The reasons why an image is left as its origin sent it.

use http_semantics::labelled;

labelled! {
    /// The reason why a client gets the origin's bytes.
    Left {
        /// The method is not GET.
        Method = "method";
        /// The request does not accept `image/webp`, or is not for an image.
        Accept = "accept";
        /// The request is for a part (`Range`), or has a body.
        Range = "range";
        /// The client reloads past caches (`no-cache`) or forbids storing (`no-store`).
        Reload = "reload";
        /// The request or the response says `no-transform`.
        NoTransform = "no_transform";
        /// The request has `Authorization`.
        Authorization = "authorization";
        /// The request has `Origin`: a script may read the pixels.
        Cors = "cors";
        /// The status of the response is not 200.
        Status = "status";
        /// The response says `no-store`.
        NoStore = "no_store";
        /// The response sets a cookie.
        Cookie = "cookie";
        /// The response has a digest of its bytes, or an encoding. Browsers verify `Unencoded-Digest`, so such an image stays.
        Digest = "digest";
        /// The response is a download (`Content-Disposition: attachment`).
        Download = "download";
        /// The type of the response is neither JPEG nor PNG, or its bytes are of another type.
        Type = "type";
        /// The operator excludes this host.
        Excluded = "excluded";
        /// The response has no length, or its body does not have that length.
        Length = "length";
        /// The image is smaller than `page.images.min`.
        Small = "small";
        /// The image is larger than `page.images.max`.
        Large = "large";
        /// The image has more pixels than `limits.image_pixels`, or a side of more than 16383.
        Pixels = "pixels";
        /// The image is animated, or the file holds several images.
        Animated = "animated";
        /// The colours of the image are not RGB or grey, or its profile cannot be kept.
        Colours = "colours";
        /// A sample of the image has more than 8 bits.
        Depth = "depth";
        /// The Exif data give the image a size in CSS pixels of its own, or turn a PNG. A variant cannot state that.
        Exif = "exif";
        /// The image is truncated or malformed.
        Malformed = "malformed";
        /// The variant would have more than nine tenths of the bytes.
        NoGain = "no_gain";
        /// No worker was free within half of `limits.image_time`, or at once if the client keeps workers busy.
        Busy = "busy";
        /// The worker needed more than `limits.image_time` or `limits.image_memory`, or ended, now or up to ten minutes ago.
        Worker = "worker";
        /// The origin was slow to send the image.
        Slow = "slow";
    }
}
