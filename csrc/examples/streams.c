/* Orders two streams by an event and measures the time between two events. */

#include "try.h"

int main(void)
{
    sv_stream first = 0, second = 0;
    sv_event start = 0, end = 0;
    float milliseconds = 0;

    if (sv_stream_create(0, 0, &first) != SV_OK) {
        printf("no device: %s\n", sv_last_error());
        return 0;
    }
    TRY(sv_stream_create(0, 0, &second));
    TRY(sv_event_create(0, 1, &start));
    TRY(sv_event_create(0, 1, &end));
    TRY(sv_event_record(start, first));
    /* Work on `second` begins after the work that `first` has now. */
    TRY(sv_stream_wait_event(second, start));
    TRY(sv_event_record(end, second));
    TRY(sv_event_synchronize(end));
    TRY(sv_event_elapsed(start, end, &milliseconds));
    printf("%.3f ms between the events\n", (double)milliseconds);
    TRY(sv_release(start));
    TRY(sv_release(end));
    TRY(sv_release(first));
    TRY(sv_release(second));
    return 0;
}
